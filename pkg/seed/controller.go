package seed

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupbucket"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupentry"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Reasons of Events.
//
// +events:on=Seed
const (
	eventInUse    = "DeletionRefused"     // Warning: the Seed cannot be deleted yet, because others refer to it
	eventInactive = "NotActive"           // Warning: the Seed requires components that this version does not have
	eventError    = "ReconcileError"      // Warning: the Seed could not be reconciled
	eventKept     = "ResourceManagerKept" // Warning: the Seed is deleted, but its resource-manager is kept because other ManagedResources exist
)

// The actions of these Events.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

// defaultSyncAfter is the default syncPeriod.
const defaultSyncAfter = time.Minute

// reconciler runs the flow of the only Seed of this gardenlet.
type reconciler struct {
	seed     client.Client
	uncached client.Reader
	// cache contains the objects of the seed that the flow reads.
	cache          cache.Cache
	garden         client.Client
	gardenUncached client.Reader
	objects        *gardenobjects.Cache
	events         events.EventRecorder
	emitter        *flow.Emitter
	secrets        *secrets.Manager
	options        Options
	images         images.Vector
	facts          *seedfacts.Reader

	// unused is the number of unused Secrets.
	unused int
	// written is the Seed as returned by the last write. The cache might not show it yet.
	written *corev1beta1.Seed
	// lastRefusal is the text of the last Event about a refused deletion. It prevents duplicate Events.
	lastRefusal string
}

// Reconcile computes a plan and emits it. Each step is a no-op if nothing has to change.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var seed corev1beta1.Seed
	if err := r.garden.Get(ctx, request.NamespacedName, &seed); err != nil {
		if apierrors.IsNotFound(err) {
			r.objects.Release(r.user())
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.isNewer(&seed) {
		r.written.DeepCopyInto(&seed)
	}
	if !controllerutil.ContainsFinalizer(&seed, constants.GardenerName) {
		if seed.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		// The watch reports the change, and the next pass continues.
		return reconcile.Result{}, r.patch(ctx, &seed, func() { controllerutil.AddFinalizer(&seed, constants.GardenerName) })
	}
	result, err := r.run(ctx, &seed)
	if err != nil {
		if reported := r.write(ctx, &seed, r.failed(&seed, err)); reported != nil {
			err = errors.Join(err, reported)
		}
		r.events.Eventf(&seed, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", flow.ReasonOf(err))
	}
	return result, err
}

// isNewer reports whether the last written Seed is newer than the cached one.
func (r *reconciler) isNewer(cached *corev1beta1.Seed) bool {
	if r.written == nil || r.written.UID != cached.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, r.written.ResourceVersion)
	return err == nil && order < 0
}

// run executes one pass: observe, plan, emit, report.
func (r *reconciler) run(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	in, err := r.observe(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.write(ctx, seed, r.started(in)); err != nil {
		return reconcile.Result{}, err
	}
	plan, err := Plan(in)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, failure := r.emitter.Emit(ctx, in.Owner, plan)
	if failure != nil && result.Live.ManagedResources == nil {
		return reconcile.Result{}, failure // nothing is known about the bundles
	}
	var later time.Duration
	if failure == nil {
		var status corev1beta1.SeedStatus
		status, later = r.progress(in, result)
		failure = r.write(ctx, seed, status)
	}
	// The failure of a bundle does not end the pass: the other steps are executed, and all failures are reported.
	next := requeue.Earlier(plan.NextAt(in.Now), result.Plan.NextAt(in.Now))
	wake := r.after(in, next, later)
	if in.Deleting {
		if failure != nil {
			return reconcile.Result{}, failure
		}
		return r.finish(ctx, seed, in, plan, wake)
	}
	return wake, errors.Join(failure, r.ensureBucket(ctx, in), r.operate(ctx, seed), r.cleanUp(ctx, in, result))
}

// after returns when the next pass is due if no watch reports a change. At the sync period everything is computed
// again, and usually nothing is written.
func (r *reconciler) after(in Inputs, next time.Time, later time.Duration) reconcile.Result {
	wait := defaultSyncAfter
	if controllers := r.options.Config.Controllers; controllers != nil && controllers.Seed != nil && controllers.Seed.SyncPeriod != nil {
		wait = controllers.Seed.SyncPeriod.Duration
	}
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(in.Now), time.Millisecond))
	}
	if later > 0 {
		wait = min(wait, later)
	}
	return reconcile.Result{RequeueAfter: wait}
}

// ensureBucket creates or updates the BackupBucket of the Seed in the garden as soon as the required extensions can be
// installed.
func (r *reconciler) ensureBucket(ctx context.Context, in Inputs) error {
	backup := in.Seed.Spec.Backup
	if backup == nil || in.Extensions == nil || in.checkVersion() != "" || len(in.missingExtensions()) > 0 {
		return nil
	}
	wanted := bucketOf(in.Seed)
	if in.Bucket == nil {
		if err := client.IgnoreAlreadyExists(r.garden.Create(ctx, wanted)); err != nil {
			return fmt.Errorf("create BackupBucket %s: %w", wanted.Name, err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(in.Bucket.Spec, wanted.Spec) {
		return nil
	}
	before := client.MergeFrom(in.Bucket.DeepCopy())
	in.Bucket.Spec = wanted.Spec
	if err := r.garden.Patch(ctx, in.Bucket, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("update BackupBucket %s: %w", wanted.Name, err)
	}
	return nil
}

// bucketOf returns the BackupBucket of a Seed.
func bucketOf(seed *corev1beta1.Seed) *corev1beta1.BackupBucket {
	backup := seed.Spec.Backup
	return &corev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: BucketName(seed), OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed")),
		}},
		Spec: corev1beta1.BackupBucketSpec{
			Provider:       corev1beta1.BackupBucketProvider{Type: backup.Provider, Region: ptr.Deref(backup.Region, seed.Spec.Provider.Region)},
			ProviderConfig: backup.ProviderConfig, SeedName: ptr.To(seed.Name), CredentialsRef: backup.CredentialsRef,
		},
	}
}

// cleanUp deletes unused Secrets.
func (r *reconciler) cleanUp(ctx context.Context, in Inputs, result flow.Result) error {
	if r.unused == 0 || len(result.Written) > 0 {
		return nil
	}
	rules := r.emitter.Rules
	live, err := flow.ObserveUncached(ctx, r.uncached, in.Owner, result.Plan, in.Namespace)
	if err != nil {
		return err
	}
	unsettled, err := flow.Unsettled(in.Owner, result.Plan, live, rules)
	if err != nil || len(unsettled) > 0 {
		return err
	}
	referred, err := secrets.ReferredIn(ctx, r.uncached, in.Namespace, result.Plan.Objects())
	if err != nil {
		return err
	}
	return r.secrets.CleanUp(ctx, secrets.Wanted{Configs: in.secretConfigs()}, unsettled, referred)
}

// finish executes the parts of a deletion that are not in the plan, and removes the finalizer of the Seed when
// everything is deleted. Until then it returns wake, which schedules the next pass.
func (r *reconciler) finish(ctx context.Context, seed *corev1beta1.Seed, in Inputs, plan flow.Plan, wake reconcile.Result) (reconcile.Result, error) {
	if in.Users == nil || len(*in.Users) > 0 {
		why, _ := in.inUse()
		if why != r.lastRefusal {
			r.events.Eventf(seed, nil, corev1.EventTypeWarning, eventInUse, actionDelete, "%s", why)
			r.lastRefusal = why
		}
		return wake, nil
	}
	if in.Bucket != nil {
		if in.Bucket.DeletionTimestamp != nil {
			return wake, nil // the watch reports its deletion
		}
		err := r.garden.Delete(ctx, in.Bucket, client.Preconditions{UID: &in.Bucket.UID})
		return wake, client.IgnoreNotFound(err)
	}
	if len(in.Emitted) > 0 || len(plan.Waits) > 0 {
		return wake, nil // the watches report their deletion
	}
	left, err := flow.Remaining(ctx, r.uncached, in.Owner, in.Namespace)
	if err != nil || len(left) > 0 {
		return wake, err
	}
	// The buckets and entries of the Seed no longer exist at this point.
	for _, name := range []string{FlowName, backupbucket.FlowName, backupentry.FlowName} {
		if err := flow.DeleteManifests(ctx, r.uncached, r.seed, in.Namespace, client.MatchingLabels{flow.LabelFlow: name}); err != nil {
			return reconcile.Result{}, err
		}
	}
	nothing := func(string) bool { return false }
	if err := r.secrets.CleanUp(ctx, secrets.Wanted{}, nil, nothing); err != nil {
		return reconcile.Result{}, err
	}
	if gone, err := r.removeResourceManager(ctx, in); err != nil || !gone {
		return reconcile.Result{RequeueAfter: removedAfter}, err
	}
	return reconcile.Result{}, r.patch(ctx, seed, func() { controllerutil.RemoveFinalizer(seed, constants.GardenerName) })
}

// patch applies a change to the Seed with optimistic locking.
func (r *reconciler) patch(ctx context.Context, seed *corev1beta1.Seed, change func()) error {
	before := client.MergeFromWithOptions(seed.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.garden.Patch(ctx, seed, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write Seed %s: %w", seed.Name, err)
	}
	r.written = seed.DeepCopy()
	return nil
}

// write updates the status if it has changed. Conditions are merged by type, so that each writer sends only its own
// ones.
func (r *reconciler) write(ctx context.Context, seed *corev1beta1.Seed, status corev1beta1.SeedStatus) error {
	if equality.Semantic.DeepEqual(status, seed.Status) {
		return nil
	}
	before := client.StrategicMergeFrom(seed.DeepCopy())
	seed.Status = status
	if err := r.garden.Status().Patch(ctx, seed, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of Seed %s: %w", seed.Name, err)
	}
	r.written = seed.DeepCopy()
	return nil
}
