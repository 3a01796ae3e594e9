package backupbucket

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reconciler makes extensions create the BackupBuckets of a Seed. Live reads the extension objects, from a cache if there is one.
type Reconciler struct {
	*backup.Seed

	Live client.Reader

	// copied are the last copies of generated Secrets, by the names of buckets.
	copied sync.Map
}

// Reconcile reconciles one BackupBucket.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bucket := &corev1beta1.BackupBucket{}
	if err := r.Garden.Get(ctx, request.NamespacedName, bucket); err != nil {
		if apierrors.IsNotFound(err) {
			r.Objects.Release(backup.UserOf(flow.Owner{Flow: FlowName, Name: request.Name}))
			flow.Forget(FlowName, "", request.Name)
			r.copied.Delete(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(bucket.Spec.SeedName, "") != r.Name {
		return reconcile.Result{}, nil
	}
	if kept, err := r.Keep(ctx, bucket); err != nil || !kept {
		return reconcile.Result{}, err
	}
	done, err := r.run(ctx, bucket)
	if done.released && err == nil {
		return reconcile.Result{}, nil
	}
	if err := errors.Join(err, r.report(ctx, bucket, done.why, backup.FailureOf(err, done.failed))); err != nil {
		return reconcile.Result{}, err
	}
	return done.result, nil
}

// outcome is the outcome of a pass.
type outcome struct {
	// why is the reason why the extension has not finished, or empty if it has. failed is its error, if any.
	why    string
	failed *corev1beta1.LastError
	// released is set when nothing of a bucket is left, and its finalizer is removed.
	released bool
	result   reconcile.Result
}

// run reconciles a BackupBucket that has gardenlet's finalizer. If the extension object cannot be written, what follows from its present state is
// still done.
func (r *Reconciler) run(ctx context.Context, bucket *corev1beta1.BackupBucket) (outcome, error) {
	in := inputs{
		owner: flow.Owner{Flow: FlowName, UID: bucket.UID, Name: bucket.Name}, namespace: r.Namespace, bucket: bucket, now: r.Clock.Now(),
	}
	key := keyOf(r.Namespace, bucket.Name)
	readAll := r.Objects.Begin(backup.UserOf(in.owner))
	var err error
	if in.asked, err = r.Asked(ctx, in.owner, key); err != nil {
		return outcome{}, err
	}
	live, err := r.live(ctx, bucket.Name)
	if err != nil {
		return outcome{}, err
	}
	if live != nil {
		in.live = backup.ExtensionOf(live)
	}
	deleting := bucket.DeletionTimestamp != nil
	secret, from, err := r.Credentials(ctx, in.owner, bucket.Spec.CredentialsRef, SecretName(bucket.Name))
	if err != nil && (!deleting || client.IgnoreNotFound(err) != nil) {
		return outcome{}, err
	}
	if err == nil {
		in.credentials = backup.DigestOf(secret.Data)
		if err := r.prepare(ctx, in, secret, from, deleting); err != nil {
			return outcome{}, err
		}
	}
	plan, asked, err := in.plan(func(key flow.Key, object *extensionsv1alpha1.BackupBucket, asked backup.Asked) flow.Bundle {
		return r.Bundle(key, object, constants.OperationReconcile, asked, "BackupBucket")
	})
	if err != nil {
		return outcome{}, err
	}
	r.Remember(in.owner, asked) // even if Emit fails, because the ManagedResource may have been written
	result, emitErr := r.Emitter.Emit(ctx, in.owner, plan)
	done := outcome{failed: backup.Failing(in.live, result, key), result: requeue.At(result.Plan.NextAt(in.now), in.now)}
	if deleting {
		done.why, done.result = "the extension object is being deleted", reconcile.Result{RequeueAfter: backup.DeletingEvery}
		done.released, err = r.finish(ctx, in, live, from)
		return done, errors.Join(emitErr, err)
	}
	if done.why = in.live.Ready(asked); done.why != "" {
		return done, emitErr
	}
	if err := r.publish(ctx, in, live); err != nil {
		return done, errors.Join(emitErr, err)
	}
	readAll()
	return done, emitErr
}

// prepare protects the credentials in the garden with a finalizer while the bucket uses them, and copies them to the seed.
func (r *Reconciler) prepare(ctx context.Context, in inputs, secret *corev1.Secret, from client.Object, deleting bool) error {
	if !deleting {
		err := r.Finalizers(ctx, from, func(o client.Object) bool {
			added := controllerutil.AddFinalizer(o, constants.FinalizerBackupBucket)
			return controllerutil.RemoveFinalizer(o, constants.FinalizerExternalGardener) || added
		})
		if err != nil {
			return err
		}
	}
	if deleting && in.live == nil {
		return nil
	}
	return r.EnsureSecret(ctx, in.owner, secret, in.now)
}

// live reads the extension object. It returns nil if the object does not exist.
func (r *Reconciler) live(ctx context.Context, name string) (*extensionsv1alpha1.BackupBucket, error) {
	live := &extensionsv1alpha1.BackupBucket{}
	if found, err := backup.ReadExtension(ctx, r.Live, "BackupBucket", name, live); !found {
		return nil, err
	}
	return live, nil
}

// copied identifies a copy of a generated Secret: the resource version of the extension object, and a digest of the data.
type copied struct{ version, digest string }

// publish copies the generated Secret and the provider status of the extension to the garden. It copies the Secret again if
// the copy was deleted or changed.
func (r *Reconciler) publish(ctx context.Context, in inputs, live *extensionsv1alpha1.BackupBucket) error {
	bucket := in.bucket
	bucket.Status.ProviderStatus = live.Status.ProviderStatus
	ref := live.Status.GeneratedSecretRef
	if ref == nil {
		return nil
	}
	generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenNamespace, Name: constants.PrefixGeneratedBackupBucketSecret + bucket.Name,
	}}
	bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: generated.Namespace, Name: generated.Name}
	garden, present := readingGarden{r.Garden, r.Objects, backup.UserOf(in.owner)}, &corev1.Secret{}
	err := garden.Get(ctx, client.ObjectKeyFromObject(generated), present)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the copy of the Secret that the extension generated: %w", err)
	}
	if last, _ := r.copied.Load(bucket.Name); err == nil && last == any(copied{live.ResourceVersion, backup.DigestOf(present.Data)}) {
		return nil
	}
	source := &corev1.Secret{}
	if err := r.Uncached.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, source); err != nil {
		return fmt.Errorf("read the Secret that the extension generated: %w", err)
	}
	_, err = controllerutil.CreateOrPatch(ctx, garden, generated, func() error {
		controllerutil.AddFinalizer(generated, constants.FinalizerBackupBucket)
		owner := *metav1.NewControllerRef(bucket, corev1beta1.SchemeGroupVersion.WithKind("BackupBucket"))
		generated.OwnerReferences = []metav1.OwnerReference{owner}
		generated.Data = source.Data
		return nil
	})
	if err != nil {
		return fmt.Errorf("copy the Secret that the extension generated: %w", err)
	}
	r.copied.Store(bucket.Name, copied{live.ResourceVersion, backup.DigestOf(source.Data)})
	return nil
}

// report writes the status if it has changed. why is the reason why the extension has not finished, or empty if it has.
func (r *Reconciler) report(ctx context.Context, bucket *corev1beta1.BackupBucket, why string, failed *corev1beta1.LastError) error {
	current := &corev1beta1.BackupBucket{}
	if err := r.Garden.Get(ctx, client.ObjectKeyFromObject(bucket), current); err != nil {
		return client.IgnoreNotFound(err)
	}
	status := *current.Status.DeepCopy()
	status.ProviderStatus, status.GeneratedSecretRef = bucket.Status.ProviderStatus, bucket.Status.GeneratedSecretRef
	status.ObservedGeneration = bucket.Generation
	next := corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
	if bucket.DeletionTimestamp != nil {
		next.Type = corev1beta1.LastOperationTypeDelete
	}
	switch {
	case failed != nil:
		next.State, next.Progress, next.Description = corev1beta1.LastOperationStateError, backup.ErrorProgress, failed.Description
	case why == "":
		next.State, next.Progress = corev1beta1.LastOperationStateSucceeded, 100
		next.Description = "Backup Bucket has been successfully reconciled."
	default:
		next.State, next.Description = corev1beta1.LastOperationStateProcessing, why
	}
	status.LastOperation, status.LastError = backup.Report(status.LastOperation, status.LastError, next, failed, r.Clock.Now())
	if equality.Semantic.DeepEqual(status, current.Status) {
		return nil
	}
	before := client.MergeFrom(current.DeepCopy())
	current.Status = status
	if err := r.Garden.Status().Patch(ctx, current, before, client.FieldOwner(backup.FieldManager)); err != nil {
		return fmt.Errorf("write the status of BackupBucket %s: %w", bucket.Name, err)
	}
	return nil
}

// finish deletes, in this order: the generated Secret, the extension object and its bundle, the Secret in the seed, and the finalizers. It reports
// whether everything is deleted.
func (r *Reconciler) finish(ctx context.Context, in inputs, live *extensionsv1alpha1.BackupBucket, from client.Object) (bool, error) {
	if err := r.deleteGenerated(ctx, in.owner, in.bucket); err != nil {
		return false, err
	}
	left, err := flow.Remaining(ctx, r.Uncached, in.owner, r.Namespace)
	if err != nil || live != nil || len(left) > 0 {
		return false, err
	}
	if err := r.DeleteSecret(ctx, SecretName(in.bucket.Name)); err != nil {
		return false, err
	}
	r.Forget(in.owner)
	if from != nil {
		shared, err := r.sharesCredentials(ctx, in.bucket)
		if err != nil {
			return false, err
		}
		if !shared {
			remove := func(o client.Object) bool { return controllerutil.RemoveFinalizer(o, constants.FinalizerBackupBucket) }
			if err := r.Finalizers(ctx, from, remove); err != nil {
				return false, err
			}
		}
	}
	return true, r.Finalizers(ctx, in.bucket, func(o client.Object) bool {
		return controllerutil.RemoveFinalizer(o, constants.GardenerName)
	})
}

// sharesCredentials reports whether another bucket, of any Seed, uses the same credentials. It reads the API server, because the
// cache contains only the buckets of this Seed, and may lack new ones.
func (r *Reconciler) sharesCredentials(ctx context.Context, bucket *corev1beta1.BackupBucket) (bool, error) {
	var all corev1beta1.BackupBucketList
	if err := r.GardenReader.List(ctx, &all); err != nil {
		return false, fmt.Errorf("list the BackupBuckets: %w", err)
	}
	for _, other := range all.Items {
		if other.Name != bucket.Name && equality.Semantic.DeepEqual(other.Spec.CredentialsRef, bucket.Spec.CredentialsRef) {
			return true, nil
		}
	}
	return false, nil
}

// deleteGenerated deletes the generated Secret from the garden.
func (r *Reconciler) deleteGenerated(ctx context.Context, owner flow.Owner, bucket *corev1beta1.BackupBucket) error {
	ref := bucket.Status.GeneratedSecretRef
	if ref == nil {
		return nil
	}
	generated := &corev1.Secret{}
	if err := r.Objects.Get(ctx, backup.UserOf(owner), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, generated); err != nil {
		return client.IgnoreNotFound(err)
	}
	if generated.DeletionTimestamp == nil {
		if err := client.IgnoreNotFound(r.Garden.Delete(ctx, generated)); err != nil {
			return fmt.Errorf("delete the generated Secret: %w", err)
		}
	}
	patch := client.MergeFrom(generated.DeepCopy())
	controllerutil.RemoveFinalizer(generated, constants.FinalizerBackupBucket)
	if err := client.IgnoreNotFound(r.Garden.Patch(ctx, generated, patch, client.FieldOwner(backup.FieldManager))); err != nil {
		return fmt.Errorf("remove the finalizer of the generated Secret: %w", err)
	}
	return nil
}

// readingGarden is a client of the garden that reads Secrets through individual watches.
type readingGarden struct {
	client.Client

	objects backup.Objects
	user    gardenobjects.User
}

// Get reads an object.
func (g readingGarden) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return g.objects.Get(ctx, g.user, key, object)
}
