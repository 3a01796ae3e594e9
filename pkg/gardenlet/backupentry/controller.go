package backupentry

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reconciler makes extensions handle the BackupEntries of a Seed. Live reads the extension objects, from a cache if there is one.
type Reconciler struct {
	*backup.Seed

	Live   client.Reader
	Config *gardenletv1alpha1.BackupEntryController
}

// Reconcile reconciles one BackupEntry.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	entry := &corev1beta1.BackupEntry{}
	if err := r.Garden.Get(ctx, request.NamespacedName, entry); err != nil {
		if apierrors.IsNotFound(err) {
			r.Objects.Release(backup.UserOf(flow.Owner{Flow: FlowName, Namespace: request.Namespace, Name: request.Name}))
			flow.Forget(FlowName, request.Namespace, request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	in := inputs{
		owner: flow.Owner{Flow: FlowName, UID: entry.UID, Namespace: entry.Namespace, Name: entry.Name}, namespace: r.Namespace, seed: r.Name,
		entry: entry, config: r.Config, now: r.Clock.Now(),
	}
	if in.phase() == phaseNone {
		return reconcile.Result{}, nil
	}
	if kept, err := r.Keep(ctx, entry); err != nil || !kept {
		return reconcile.Result{}, err
	}
	done, err := r.run(ctx, in)
	if done.released && err == nil {
		return reconcile.Result{}, nil
	}
	if err := errors.Join(err, r.report(ctx, in, done.why, backup.FailureOf(err, done.failed))); err != nil {
		return reconcile.Result{}, err
	}
	if done.restored {
		return reconcile.Result{}, r.restored(ctx, entry)
	}
	return done.result, nil
}

// outcome is the outcome of a pass.
type outcome struct {
	// why is the reason why the operation has not finished, or empty if it has. failed is the error of the extension, if any.
	why    string
	failed *corev1beta1.LastError
	// released is set when nothing of an entry is left, and its finalizer is removed. restored is set when a restoration has finished.
	released, restored bool
	result             reconcile.Result
}

// run reconciles a BackupEntry that has gardenlet's finalizer. If the extension object cannot be written, what follows from its present state is
// still done.
func (r *Reconciler) run(ctx context.Context, in inputs) (outcome, error) {
	phase, key := in.phase(), keyOf(r.Namespace, in.entry.Name)
	var err error
	if in.asked, err = r.Asked(ctx, in.owner, key); err != nil {
		return outcome{}, err
	}
	live, err := r.live(ctx, in.entry.Name)
	if err != nil {
		return outcome{}, err
	}
	if live != nil {
		in.live = backup.ExtensionOf(live)
	}
	readAll := r.Objects.Begin(backup.UserOf(in.owner))
	if phase != phaseWait {
		if err := r.prepare(ctx, &in, live != nil); err != nil {
			return outcome{}, err
		}
	}
	readAll()
	emitted, err := flow.Emitted(ctx, r.Emitted, in.owner)
	if err != nil {
		return outcome{}, err
	}
	bundle := func(key flow.Key, object *extensionsv1alpha1.BackupEntry, operation string, asked backup.Asked) flow.Bundle {
		return r.Bundle(key, object, operation, asked, "BackupEntry")
	}
	plan, asked, err := in.plan(len(emitted) > 0, bundle)
	if err != nil {
		return outcome{}, err
	}
	r.Remember(in.owner, asked) // even if Emit fails, because the ManagedResource may have been written
	result, emitErr := r.Emitter.Emit(ctx, in.owner, plan)
	done := outcome{failed: backup.Failing(in.live, result, key), result: requeue.At(result.Plan.NextAt(in.now), in.now)}
	switch {
	case phase == phaseWait:
		done.why, done.failed = fmt.Sprintf("the backups are deleted at %s", in.deletedAt().UTC().Format(time.RFC3339)), nil
		done.result = requeue.At(plan.NextAt(in.now), in.now)
	case plan.Deleting:
		done, err = r.finish(ctx, in, live != nil, done)
		return done, errors.Join(emitErr, err)
	default:
		done.why = in.live.Ready(asked)
		if done.why == "" && phase == phaseMigrate {
			done.why = "the extension object is not deleted yet" // a later reconcile deletes it and completes the migration
		}
		done.restored = done.why == "" && phase == phaseRestore
	}
	return done, emitErr
}

// restored removes the request to restore an entry.
func (r *Reconciler) restored(ctx context.Context, entry *corev1beta1.BackupEntry) error {
	return r.Finalizers(ctx, entry, func(o client.Object) bool {
		annotations := o.GetAnnotations()
		delete(annotations, constants.AnnotationGardenerOperation)
		o.SetAnnotations(annotations)
		return true
	})
}

// prepare reads the bucket and copies the credentials to the seed.
func (r *Reconciler) prepare(ctx context.Context, in *inputs, exists bool) error {
	going := in.phase() == phaseDelete || in.phase() == phaseMigrate
	bucket, err := r.bucket(ctx, in.owner, in.entry.Spec.BucketName)
	in.bucket = bucket
	if going && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read BackupBucket %s: %w", in.entry.Spec.BucketName, err)
	}
	if why := bucketNotReady(bucket); why != "" && !going {
		return errors.New(why)
	}
	if in.phase() == phaseRestore {
		if err := r.findState(ctx, in); err != nil {
			return err
		}
	}
	ref := bucket.Spec.CredentialsRef
	if generated := bucket.Status.GeneratedSecretRef; generated != nil {
		ref = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: generated.Namespace, Name: generated.Name}
	}
	secret, _, err := r.Credentials(ctx, in.owner, ref, SecretName(in.entry.Name))
	if err != nil {
		if going && client.IgnoreNotFound(err) == nil {
			return nil // the extension object is deleted with its existing credentials
		}
		return err
	}
	in.credentials = backup.DigestOf(secret.Data)
	if going && !exists {
		return nil
	}
	return r.EnsureSecret(ctx, in.owner, secret, in.now)
}

// bucket reads a BackupBucket. The cache contains those of this Seed. While backups move, entries are in the bucket of another Seed.
func (r *Reconciler) bucket(ctx context.Context, owner flow.Owner, name string) (*corev1beta1.BackupBucket, error) {
	bucket := &corev1beta1.BackupBucket{}
	err := r.Garden.Get(ctx, client.ObjectKey{Name: name}, bucket)
	if apierrors.IsNotFound(err) {
		err = r.Objects.Get(ctx, backup.UserOf(owner), client.ObjectKey{Name: name}, bucket)
	}
	return bucket, err
}

// findState reads the state that the extension saved before a migration, and whether it has been applied in this seed.
func (r *Reconciler) findState(ctx context.Context, in *inputs) error {
	owner := metav1.GetControllerOf(in.entry)
	if owner == nil || owner.Kind != "Shoot" {
		return nil
	}
	state := &corev1beta1.ShootState{}
	err := r.Objects.Get(ctx, backup.UserOf(in.owner), client.ObjectKey{Namespace: in.entry.Namespace, Name: owner.Name}, state)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	in.saved = savedFor(in.entry, state)
	if in.saved != nil && in.asked.For(constants.OperationWaitForState) {
		in.stateApplied, err = r.Applied(ctx, in.owner, keyOf(r.Namespace, in.entry.Name), in.asked)
	}
	return err
}

// live reads the extension object. It returns nil if the object does not exist.
func (r *Reconciler) live(ctx context.Context, name string) (*extensionsv1alpha1.BackupEntry, error) {
	live := &extensionsv1alpha1.BackupEntry{}
	if found, err := backup.ReadExtension(ctx, r.Live, "BackupEntry", name, live); !found {
		return nil, err
	}
	return live, nil
}

// finish completes a deletion or migration once the extension object is deleted.
func (r *Reconciler) finish(ctx context.Context, in inputs, exists bool, done outcome) (outcome, error) {
	done.why, done.result = "the extension object is being deleted", reconcile.Result{RequeueAfter: backup.DeletingEvery}
	left, err := flow.Remaining(ctx, r.Uncached, in.owner, r.Namespace)
	if err != nil || exists || len(left) > 0 {
		return done, err
	}
	if err := r.DeleteSecret(ctx, SecretName(in.entry.Name)); err != nil {
		return done, err
	}
	r.Forget(in.owner)
	if in.phase() == phaseMigrate {
		return outcome{}, nil
	}
	return outcome{released: true}, r.Finalizers(ctx, in.entry, func(o client.Object) bool {
		return controllerutil.RemoveFinalizer(o, constants.GardenerName)
	})
}

// report writes the status if it has changed. why is the reason why the operation has not finished, or empty if it has.
func (r *Reconciler) report(ctx context.Context, in inputs, why string, failed *corev1beta1.LastError) error {
	status := *in.entry.Status.DeepCopy()
	status.ObservedGeneration, status.SeedName = in.entry.Generation, ptr.To(in.seed)
	next := corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
	phase := in.phase()
	switch phase {
	case phaseRestore:
		next.Type = corev1beta1.LastOperationTypeRestore
	case phaseMigrate:
		next.Type = corev1beta1.LastOperationTypeMigrate
		if status.MigrationStartTime == nil {
			status.MigrationStartTime = ptr.To(metav1.NewTime(in.now))
		}
	case phaseDelete, phaseWait:
		next.Type = corev1beta1.LastOperationTypeDelete
	}
	switch {
	case failed != nil:
		next.State, next.Progress, next.Description = corev1beta1.LastOperationStateError, backup.ErrorProgress, failed.Description
	case phase == phaseWait:
		next.State, next.Description = corev1beta1.LastOperationStatePending, why
	case why != "":
		next.State, next.Description = corev1beta1.LastOperationStateProcessing, why
	default:
		next.State, next.Progress, next.Description = corev1beta1.LastOperationStateSucceeded, 100, "Backup Entry has been successfully handled."
		if phase == phaseMigrate {
			status.SeedName, status.MigrationStartTime = nil, nil
		}
	}
	status.LastOperation, status.LastError = backup.Report(status.LastOperation, status.LastError, next, failed, in.now)
	if equality.Semantic.DeepEqual(status, in.entry.Status) {
		return nil
	}
	before := client.MergeFrom(in.entry.DeepCopy())
	in.entry.Status = status
	if err := r.Garden.Status().Patch(ctx, in.entry, before, client.FieldOwner(backup.FieldManager)); err != nil {
		return fmt.Errorf("write the status of BackupEntry %s/%s: %w", in.entry.Namespace, in.entry.Name, err)
	}
	return nil
}
