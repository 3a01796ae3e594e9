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
	eventReconciling = "Reconciling"    // Normal: an operation begins
	eventReconciled  = "Reconciled"     // Normal: an operation has succeeded
	eventRolloutHeld = "RolloutHeld"    // Normal: what only the version of gardenlet changes waits, for the reason in the note
	eventDeleted     = "Deleted"        // Normal: the control plane is gone
	eventError       = "ReconcileError" // Warning: the Shoot could not be reconciled
)

// The actions of these Events.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

// defaultSyncAfter is how often a Shoot is computed again if the configuration does not say. Nothing is sent if nothing has changed.
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
	// domains has the Secrets of the garden with default domains.
	domains cache.Cache
	// extensions has what extensions report about their objects.
	extensions *extensionobjects.Objects
	events     events.EventRecorder
	emitter    *flow.Emitter
	states     *state.Keeper
	ledgers    *flow.Ledgers
	options    Options
	images     images.Vector

	mu sync.Mutex
	// written are the Shoots as the garden's API server answered to the last write. A cache may not show it yet.
	written map[types.UID]*corev1beta1.Shoot
	// copied are digests of what was written for Shoots into the garden.
	copied map[types.UID]string
	// owners are the Shoots by the namespaces of their control planes.
	owners map[string]types.NamespacedName
	// rewrites say how far the objects of Shoots have been rewritten.
	rewrites map[types.UID]cursor
	// asked says when extensions were asked for which generations. What the bundles say of that may not be in the cache yet.
	asked map[types.UID]asked
}

// Reconcile makes a plan and emits it. Each step leaves all as it is if nothing has to be done.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.garden.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot = r.newest(shoot)
	if !r.isOurs(shoot) {
		return reconcile.Result{}, nil
	}
	if !controllerutil.ContainsFinalizer(shoot, constants.GardenerName) {
		if shoot.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		// The watch shows the change, and the next pass goes on.
		return reconcile.Result{}, r.patch(ctx, shoot, func() { controllerutil.AddFinalizer(shoot, constants.GardenerName) })
	}
	result, err := r.run(ctx, shoot)
	if err != nil {
		reason := flow.ReasonOf(err)
		err = errors.Join(err, r.write(ctx, shoot, r.failed(shoot, reason)))
		r.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", reason)
	}
	return result, err
}

// isOurs reports whether the control plane of a Shoot is on this Seed: one that is to move is left to the Seed that has it.
func (r *reconciler) isOurs(shoot *corev1beta1.Shoot) bool {
	for _, name := range []*string{shoot.Status.SeedName, shoot.Spec.SeedName} {
		if name != nil && *name != "" {
			return *name == r.options.SeedName
		}
	}
	return false
}

// run is one pass.
func (r *reconciler) run(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.garden.Get(ctx, client.ObjectKey{Name: r.options.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %s: %w", r.options.SeedName, err)
	}
	settings := r.options.controller()
	looked := looked{shoot: shoot, seed: seed, gardenlet: r.options.Identity, config: &settings, now: r.options.Clock.Now()}
	if decision := looked.decide(); !decision.run {
		if decision.failed {
			if err := r.write(ctx, shoot, r.failed(shoot, decision.why)); err != nil {
				return reconcile.Result{}, err
			}
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

// emit makes the plan, emits it, and reports how far it is.
func (r *reconciler) emit(ctx context.Context, shoot *corev1beta1.Shoot, in Inputs) (reconcile.Result, error) {
	plan, err := Plan(in)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, err := r.emitter.Emit(ctx, in.Owner, plan)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.deleteBastions(ctx, in); err != nil {
		return reconcile.Result{}, err
	}
	cleaned, err := r.cleanUp(ctx, in, &result)
	if err != nil {
		return reconcile.Result{}, err
	}
	rotated, err := r.rotate(ctx, &in, &result)
	if err != nil {
		return reconcile.Result{}, err
	}
	// Before the report: an error of it is one, and must not alternate with the progress. Users of a Shoot that has succeeded find its authorities.
	if err := errors.Join(r.ensureToken(ctx, in, result), r.copyToGarden(ctx, in)); err != nil {
		return reconcile.Result{}, err
	}
	before := shoot.Status.LastOperation
	status, later := r.progress(in, result)
	if err := r.write(ctx, shoot, status); err != nil {
		return reconcile.Result{}, err
	}
	if now := shoot.Status.LastOperation; now.State == corev1beta1.LastOperationStateSucceeded && before.State != now.State {
		r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventReconciled, actionReconcile, "%s", now.Description)
		later = time.Millisecond // the Cluster gets what the status has from then on
	}
	if held := r.held(result); held != "" && before.Description != shoot.Status.LastOperation.Description {
		r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventRolloutHeld, actionReconcile, "%s", strings.TrimPrefix(held, ". "))
	}
	next := plan.NextAt(in.Now)
	if at := result.Plan.NextAt(in.Now); next.IsZero() || !at.IsZero() && at.Before(next) {
		next = at
	}
	later = sooner(later, sooner(cleaned, rotated))
	if in.Deleting {
		return r.finish(ctx, shoot, in, next, later)
	}
	return r.after(in, next, later), r.deleteUnused(ctx, in, result)
}

// after returns when the next pass is due though nothing was seen to change.
func (r *reconciler) after(in Inputs, next time.Time, later time.Duration) reconcile.Result {
	wait := defaultSyncAfter
	if period := r.options.controller().SyncPeriod; period != nil {
		wait = period.Duration
	}
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(in.Now), time.Millisecond))
	}
	if later > 0 {
		wait = min(wait, later)
	}
	return reconcile.Result{RequeueAfter: wait}
}

// sooner returns the shorter one of two times; 0 stands for never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// finish lets the Shoot go when nothing of its control plane is left.
func (r *reconciler) finish(ctx context.Context, shoot *corev1beta1.Shoot, in Inputs, next time.Time, later time.Duration) (reconcile.Result, error) {
	if in.forced() {
		if err := r.finalizeContents(ctx, in); err != nil {
			return reconcile.Result{}, err
		}
	}
	if len(in.Emitted) > 0 {
		return r.after(in, next, later), nil // the watches show when they are gone
	}
	left, err := flow.Remaining(ctx, r.uncached, in.Owner, in.GardenNamespace, in.Namespace)
	if err != nil || len(left) > 0 {
		return r.after(in, next, later), err
	}
	// The Secrets with manifests in the namespace of the control plane went with it.
	manifests := flow.DeleteManifests(ctx, r.uncached, r.seed, in.GardenNamespace, in.Owner.Labels())
	if err := errors.Join(manifests, r.states.Delete(ctx, shoot)); err != nil {
		return reconcile.Result{}, err
	}
	status := *shoot.Status.DeepCopy()
	status.LastErrors, status.RetryCycleStartTime = nil, nil
	status.LastOperation.State, status.LastOperation.Progress = corev1beta1.LastOperationStateSucceeded, 100
	status.LastOperation.Description = nameOf(corev1beta1.LastOperationTypeDelete) + " finished"
	if err := r.write(ctx, shoot, status); err != nil {
		return reconcile.Result{}, err
	}
	r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventDeleted, actionDelete, "The control plane is gone")
	if err := r.removeFinalizer(ctx, shoot); err != nil {
		return reconcile.Result{}, err
	}
	r.forget(in)
	return reconcile.Result{}, nil
}

// removeFinalizer repeats a write that conflicts with one of the conditions, which follow the state of the operation that was written just before. If
// the conflict were reported, that would change the state, and then the conditions, again.
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
			return nil // the Shoot is gone, and another one has its name
		}
		return err
	})
}

// newest returns the Shoot that was written last if it is newer than one from a cache.
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

func (r *reconciler) remember(shoot *corev1beta1.Shoot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[shoot.UID] = shoot.DeepCopy()
}

// forget frees the memory of a Shoot that is gone.
func (r *reconciler) forget(in Inputs) {
	r.ledgers.Forget(in.ledgerKey())
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, in.Owner.UID)
	delete(r.copied, in.Owner.UID)
	delete(r.asked, in.Owner.UID)
	delete(r.owners, in.Namespace)
	delete(r.rewrites, in.Owner.UID)
}

// patch writes a change of the Shoot, if it is still the one that was read.
func (r *reconciler) patch(ctx context.Context, shoot *corev1beta1.Shoot, change func()) error {
	before := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.garden.Patch(ctx, shoot, before, client.FieldOwner(fieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err))
	}
	r.remember(shoot)
	return nil
}

// write writes the status, if it has changed. Each writer of conditions sends its own ones: they are merged by type. After an error the Shoot has the status
// that it had: what is written next is compared with that, and its operation is still the one that has not ended.
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
