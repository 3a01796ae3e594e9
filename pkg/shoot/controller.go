package shoot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
	"github.com/trellis-k8s/trellis/pkg/shoot/state"
)

// Reasons of Events.
//
// +events:on=Shoot
const (
	eventReconciling  = "Reconciling"    // Normal: an operation begins
	eventReconciled   = "Reconciled"     // Normal: an operation has succeeded
	eventRolloutHeld  = "RolloutHeld"    // Normal: changes of a new version of gardenlet are held, for the reason in the note
	eventSeedNotReady = "SeedNotReady"   // Warning: an operation waits until the Seed is ready
	eventDeleted      = "Deleted"        // Normal: the control plane is deleted
	eventError        = "ReconcileError" // Warning: the Shoot could not be reconciled
)

// Actions of these Events.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

// defaultSyncAfter is the default period of a full reconciliation of a Shoot. It sends no requests if nothing has changed.
const defaultSyncAfter = time.Hour

// reconciler runs the flow of the Shoots of a Seed.
type reconciler struct {
	seed     client.Client
	uncached client.Reader
	garden   client.Client
	// projects reads Projects through a cache of the garden.
	projects client.Reader
	objects  *gardenobjects.Cache
	caches   *caches
	// domains caches the Secrets of the garden with default domains.
	domains cache.Cache
	// copies reads the metadata of the certificate authorities in the garden.
	copies interface {
		Get(ctx context.Context, user gardenobjects.User, name client.ObjectKey, object client.Object) error
	}
	// extensions caches the reports of extensions about their objects.
	extensions *extensionobjects.Objects
	events     events.EventRecorder
	emitter    *flow.Emitter
	states     *state.Keeper
	ledgers    *flow.Ledgers
	options    Options
	images     images.Vector

	mu sync.Mutex
	// written are the Shoots as the API server of the garden returned them after the last write, by UID. The cache may be older.
	written map[types.UID]*corev1beta1.Shoot
	// copied are the last copies in the garden, by the UIDs of Shoots.
	copied map[types.UID]copied
	// owners are the Shoots, by the namespaces of their control planes.
	owners map[string]types.NamespacedName
	// rewrites are the positions in the rewrite of a Shoot's objects, by the UIDs of Shoots.
	rewrites map[types.UID]cursor
	// asked are the times of requests to extensions, by the UIDs of Shoots. The bundles in the cache may not have them yet.
	asked map[types.UID]asked
}

// Reconcile makes a plan of a Shoot and emits it. It sends no requests if nothing has to be done.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.garden.Get(ctx, request.NamespacedName, shoot); err != nil {
		if apierrors.IsNotFound(err) {
			r.release(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot = r.newest(shoot)
	if !r.isOurs(shoot) {
		r.release(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if !controllerutil.ContainsFinalizer(shoot, constants.GardenerName) {
		if shoot.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		// The watch shows the change and triggers the next reconcile.
		return reconcile.Result{}, r.patch(ctx, shoot, func() { controllerutil.AddFinalizer(shoot, constants.GardenerName) })
	}
	result, err := r.run(ctx, shoot)
	if reported := (reportedError{}); err != nil && !errors.As(err, &reported) {
		reason := flow.ReasonOf(err)
		if !isKept(shoot, err) {
			err = errors.Join(err, r.write(ctx, shoot, r.failed(shoot, reason)))
		}
		r.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", reason)
	}
	return result, err
}

// isOurs reports whether the control plane of a Shoot runs on this Seed. During a migration, the Seed that has the
// control plane is responsible.
func (r *reconciler) isOurs(shoot *corev1beta1.Shoot) bool {
	for _, name := range []*string{shoot.Status.SeedName, shoot.Spec.SeedName} {
		if name != nil && *name != "" {
			return *name == r.options.SeedName
		}
	}
	return false
}

// run reconciles a Shoot once.
func (r *reconciler) run(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.garden.Get(ctx, client.ObjectKey{Name: r.options.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %s: %w", r.options.SeedName, err)
	}
	settings := r.options.controller()
	decisionInput := decisionInput{shoot: shoot, seed: seed, gardenlet: r.options.Identity, config: &settings, now: r.options.Clock.Now()}
	if decision := decisionInput.decide(); !decision.run {
		if decision.failed && isUnfinished(shoot) {
			r.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventSeedNotReady, actionReconcile, "%s", decision.why)
			if err := r.write(ctx, shoot, r.waitsForSeed(shoot, decision.why)); err != nil {
				return reconcile.Result{}, err
			}
		}
		if decision.shown {
			return r.tellExtensions(ctx, shoot, seed), nil
		}
		return reconcile.Result{RequeueAfter: decision.again}, nil
	}
	if err := r.operate(ctx, shoot); err != nil {
		return reconcile.Result{}, err
	}
	in, err := r.observe(ctx, shoot, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	begins := shoot.Status.LastOperation == nil || shoot.Status.ObservedGeneration != shoot.Generation
	if err := r.write(ctx, shoot, r.started(in)); err != nil {
		return reconcile.Result{}, err
	}
	if begins {
		r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventReconciling, actionReconcile, "%s begins", nameOf(operationType(shoot)))
	}
	return r.emit(ctx, shoot, in)
}

// emit makes the plan, emits it, acts, and reports the progress in the status. The failure of a step does not end the pass:
// the other steps are executed, and the status reports the failure together with the progress.
func (r *reconciler) emit(ctx context.Context, shoot *corev1beta1.Shoot, in Inputs) (reconcile.Result, error) {
	plan, err := Plan(in)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, failure := r.emitter.Emit(ctx, in.Owner, plan)
	if failure != nil && result.Live.ManagedResources == nil {
		return reconcile.Result{}, failure // nothing is known about the control plane
	}
	soon, err := r.act(ctx, &in, &result)
	failure = errors.Join(failure, err)
	later, err := r.report(ctx, shoot, in, result, failure)
	if err != nil {
		return reconcile.Result{}, errors.Join(failure, err)
	}
	next := plan.NextAt(in.Now)
	if at := result.Plan.NextAt(in.Now); next.IsZero() || !at.IsZero() && at.Before(next) {
		next = at
	}
	wake := r.after(in, next, sooner(later, soon))
	if in.Deleting {
		err = r.finish(ctx, shoot, in, failure == nil)
	} else if failure == nil {
		// This happens after the operation. Its failure concerns nothing that the status reports.
		failure = r.deleteUnused(ctx, in, result)
	}
	switch {
	case err != nil:
		return reconcile.Result{}, errors.Join(failure, err)
	case failure != nil && soon > 0:
		// The next step of the clean-up or of a rotation is due, which also retries what has failed.
		log.FromContext(ctx).Error(failure, "A step failed; the others go on", "again", wake.RequeueAfter.String())
		return wake, nil
	}
	return wake, reported(failure)
}

// act executes what a plan cannot express. It returns the time until its next step, or 0 if there is none, and the errors of
// all steps. All of it runs before the status is written, so that errors do not alternate with reports of progress, and so
// that the certificate authorities are in the garden when a Shoot has succeeded.
func (r *reconciler) act(ctx context.Context, in *Inputs, result *flow.Result) (time.Duration, error) {
	bastions := r.deleteBastions(ctx, *in)
	cleaned, cleanUp := r.cleanUp(ctx, *in, result)
	rotated, rotation := r.rotate(ctx, in, result)
	return sooner(cleaned, rotated), errors.Join(
		bastions, cleanUp, rotation, r.ensureToken(ctx, *in, *result), r.copyToGarden(ctx, *in),
	)
}

// report writes the status after an emission, and returns after how long to write it again. 0 means never.
func (r *reconciler) report(
	ctx context.Context, shoot *corev1beta1.Shoot, in Inputs, result flow.Result, failure error,
) (later time.Duration, err error) {
	before := shoot.Status.LastOperation
	status, later := r.progress(in, result)
	if failure != nil {
		status, later = r.failedStep(in, status, failure), 0
		r.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", flow.ReasonOf(failure))
	}
	if err := r.write(ctx, shoot, status); err != nil {
		return later, err
	}
	if now := shoot.Status.LastOperation; now.State == corev1beta1.LastOperationStateSucceeded && before.State != now.State {
		r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventReconciled, actionReconcile, "%s", now.Description)
		later = time.Millisecond // reconcile again, so that the Cluster contains the new status
	} else if now.State == corev1beta1.LastOperationStateFailed {
		later = time.Millisecond // likewise
	}
	if now := shoot.Status.LastOperation; now.Description != before.Description &&
		(now.State == corev1beta1.LastOperationStateError || now.State == corev1beta1.LastOperationStateFailed) {
		r.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", now.Description)
	}
	if held := r.held(result); held != "" && before.Description != shoot.Status.LastOperation.Description {
		r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventRolloutHeld, actionReconcile, "%s", strings.TrimPrefix(held, ". "))
	}
	return later, nil
}

// after returns when the next reconcile is due if no watch triggers one before.
func (r *reconciler) after(in Inputs, next time.Time, later time.Duration) reconcile.Result {
	wait := syncPeriod(in.Shoot, r.options.controller())
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(in.Now), time.Millisecond))
	}
	if later > 0 {
		wait = min(wait, later)
	}
	return reconcile.Result{RequeueAfter: wait}
}

// sooner returns the shorter of two durations. 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// finish removes the finalizer of the Shoot once nothing of its control plane is left and no step has failed.
func (r *reconciler) finish(ctx context.Context, shoot *corev1beta1.Shoot, in Inputs, succeeded bool) error {
	if in.forced() {
		if err := r.finalizeContents(ctx, in); err != nil {
			return err
		}
	}
	if len(in.Emitted) > 0 || !succeeded {
		return nil // watches report when they are deleted
	}
	left, err := flow.Remaining(ctx, r.uncached, in.Owner, in.GardenNamespace, in.Namespace)
	if err != nil || len(left) > 0 {
		return err
	}
	// The Secrets with manifests in the namespace of the control plane were deleted with the namespace.
	manifests := flow.DeleteManifests(ctx, r.uncached, r.seed, in.GardenNamespace, in.Owner.Labels())
	if err := errors.Join(manifests, r.states.Delete(ctx, shoot)); err != nil {
		return err
	}
	status := *shoot.Status.DeepCopy()
	status.LastErrors, status.RetryCycleStartTime = nil, nil
	status.LastOperation.State, status.LastOperation.Progress = corev1beta1.LastOperationStateSucceeded, 100
	status.LastOperation.Description = nameOf(corev1beta1.LastOperationTypeDelete) + " finished"
	if err := r.write(ctx, shoot, status); err != nil {
		return err
	}
	r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventDeleted, actionDelete, "The control plane is deleted")
	if err := r.removeFinalizer(ctx, shoot); err != nil {
		return err
	}
	r.forget(in)
	return nil
}

// removeFinalizer removes gardenlet's finalizer. It retries conflicts: the care controller writes conditions as soon as
// the state of the operation changes. Reporting such a conflict would change the state, and with it the conditions,
// again.
func (r *reconciler) removeFinalizer(ctx context.Context, shoot *corev1beta1.Shoot) error {
	uid := shoot.UID
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := r.patch(ctx, shoot, func() { controllerutil.RemoveFinalizer(shoot, constants.GardenerName) })
		if !apierrors.IsConflict(err) {
			return err
		}
		if read := r.states.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); read != nil {
			return client.IgnoreNotFound(read)
		}
		if shoot.UID != uid {
			return nil // the Shoot was deleted, and another one has its name
		}
		return err
	})
}

// newest returns the Shoot that was last written if it is newer than the cached one.
func (r *reconciler) newest(cached *corev1beta1.Shoot) *corev1beta1.Shoot {
	r.mu.Lock()
	defer r.mu.Unlock()
	written := r.written[cached.UID]
	if written == nil {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion); err != nil || order >= 0 {
		delete(r.written, cached.UID)
		return cached
	}
	return written.DeepCopy()
}

// remember stores the Shoot that was last written.
func (r *reconciler) remember(shoot *corev1beta1.Shoot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[shoot.UID] = shoot.DeepCopy()
}

// release ends the watches of objects of the garden for a Shoot.
func (r *reconciler) release(shoot client.ObjectKey) {
	r.objects.Release(userOf(shoot))
	r.objects.Release(copiesOf(shoot))
}

// forget removes a deleted Shoot from memory.
func (r *reconciler) forget(in Inputs) {
	r.ledgers.Forget(in.ledgerKey())
	r.release(client.ObjectKeyFromObject(in.Shoot))
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, in.Owner.UID)
	delete(r.copied, in.Owner.UID)
	delete(r.asked, in.Owner.UID)
	delete(r.owners, in.Namespace)
	delete(r.rewrites, in.Owner.UID)
}

// patch changes the Shoot. It fails with a conflict if the Shoot has changed since it was read.
func (r *reconciler) patch(ctx context.Context, shoot *corev1beta1.Shoot, change func()) error {
	before := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.garden.Patch(ctx, shoot, before, client.FieldOwner(fieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err))
	}
	r.remember(shoot)
	return nil
}

// write writes the status if it has changed. It sends only the changed conditions, which the API server merges by type,
// so that other writers keep theirs. If the write fails, shoot retains its previous status, so that the next write
// compares with what is stored.
func (r *reconciler) write(ctx context.Context, shoot *corev1beta1.Shoot, status corev1beta1.ShootStatus) error {
	if equality.Semantic.DeepEqual(status, shoot.Status) {
		return nil
	}
	next := shoot.DeepCopy()
	next.Status = status
	if err := r.garden.Status().Patch(ctx, next, client.StrategicMergeFrom(shoot.DeepCopy()), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	*shoot = *next
	r.remember(shoot)
	return nil
}
