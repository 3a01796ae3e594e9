// Package managedresource reconciles ManagedResources: it reads the manifests in their Secrets, applies them to the
// target cluster, deletes what is no longer wanted and says so in the condition ResourcesApplied.
package managedresource

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/ownership"
	"github.com/trellis-k8s/trellis/pkg/resting"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	// pendingInterval is how soon objects that are waited for are looked at again if no watch tells when.
	pendingInterval = time.Second
	// deletionStatusInterval is how often the status of a ManagedResource that is being deleted tells what is left, and deletionStatusAfter how
	// long its deletion may take before it does: most are over by then.
	deletionStatusInterval = 5 * time.Second
	deletionStatusAfter    = time.Second
	// dueMargin is how much later than due something is looked at again: clocks of API servers show whole seconds.
	dueMargin = 50 * time.Millisecond
	// watchedInterval is the same if a watch tells.
	watchedInterval = 30 * time.Second
	// outdatedInterval is how soon a ManagedResource is looked at again that was read in an outdated state.
	outdatedInterval = 200 * time.Millisecond
)

// Options are the settings of the controller.
type Options struct {
	// Class selects the ManagedResources: resourcesv1alpha1.DefaultClass, resourcesv1alpha1.AllClasses or another one.
	Class string
	// Namespaces are those of the source cluster in which the ManagedResources are; empty for all.
	Namespaces []string
	// ClusterID is the identity of the source cluster in the origin annotation. It may be empty.
	ClusterID string
	// ManagedBy is the value of the managed-by label on every object.
	ManagedBy string
	// SyncPeriod is how often a ManagedResource is looked at without an event.
	SyncPeriod time.Duration
	// PruneDelay is how long an object that left the manifests waits for another ManagedResource to take it over.
	PruneDelay time.Duration
	// CollectsGarbage says that the garbage collector is enabled, which then deletes its ConfigMaps and Secrets.
	CollectsGarbage bool
	// AlwaysUpdate applies every object at every reconcile.
	AlwaysUpdate bool
	// ConcurrentSyncs is the number of ManagedResources that are reconciled at once.
	ConcurrentSyncs int
	// Limits bound what one Secret may hold.
	Limits manifest.Limits
}

// Reconciler reconciles ManagedResources.
type Reconciler struct {
	// Source reads ManagedResources from a cache and writes them.
	Source client.Client
	// Direct reads from the source cluster past any cache.
	Direct client.Reader
	// Autoscalers reads HorizontalPodAutoscalers of the target cluster.
	Autoscalers client.Reader
	// Objects, Live and Engine reach the target cluster.
	Objects *target.Objects
	Live    *live.View
	Engine  *apply.Engine
	// Recorder writes Events on ManagedResources.
	Recorder events.EventRecorder
	// Metrics count what is done; nil for none.
	Metrics *Metrics
	Clock   clock.Clock
	Options Options

	claims         *ownership.Claims
	pruneDelays    *ownership.PruneDelays
	deleted        *ownership.Deleted
	suspended      *suspendedManifests
	staleReads     *ownership.StaleReads
	unrecorded     *ownership.Unrecorded
	acceptedFields *ownership.AcceptedFields
	warnings       *recentWarnings
	fights         *fights
	resting        *resting.Set
	// wake has a ManagedResource reconciled at once; it holds nil if nobody listens.
	wake *atomic.Pointer[func(types.NamespacedName)]
	// busy holds one item for each pass that works, and does not only wait.
	busy chan struct{}
	// start is what has to be known before the first reconcile.
	start *start
}

// NewReconciler completes a reconciler whose exported fields are set.
func NewReconciler(r Reconciler) *Reconciler {
	r.claims, r.pruneDelays, r.deleted, r.staleReads = ownership.NewClaims(), ownership.NewPruneDelays(), ownership.NewDeleted(), ownership.NewStaleReads(r.Clock)
	r.acceptedFields, r.warnings, r.fights = ownership.NewAcceptedFields(), newRecentWarnings(), newFights()
	r.unrecorded = ownership.NewUnrecorded()
	r.resting, r.suspended = resting.NewSet(), newSuspendedManifests()
	r.busy = make(chan struct{}, max(r.Options.ConcurrentSyncs, 1))
	r.start, r.wake = &start{}, &atomic.Pointer[func(types.NamespacedName)]{}
	return &r
}

// Reconcile brings one ManagedResource closer to what it asks for. It returns an error if trying again may help.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.busy <- struct{}{}
	defer func() { <-r.busy }()
	r.resting.Remove(request.NamespacedName)
	mr := &resourcesv1alpha1.ManagedResource{}
	err := r.Source.Get(ctx, request.NamespacedName, mr)
	if apierrors.IsNotFound(err) {
		r.forget(request.NamespacedName)
		r.staleReads.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read ManagedResource %s: %w", request, err)
	}
	if r.staleReads.Has(request.NamespacedName, mr.ResourceVersion) {
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil // the cache does not show our own last write yet
	}
	if r.staleReads.Doubts(request.NamespacedName) {
		if mr, err = r.readAfresh(ctx, request.NamespacedName); mr == nil || err != nil {
			return reconcile.Result{}, err
		}
	}
	if begun, err := r.begin(ctx); err != nil {
		return reconcile.Result{}, err
	} else if !begun {
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil
	}
	started := r.Clock.Now()
	result, err := r.fulfil(ctx, mr)
	if apierrors.IsConflict(err) {
		// The cache was behind. Nothing is wrong, and the next look is at the present state.
		result, err = reconcile.Result{RequeueAfter: outdatedInterval}, nil
	}
	r.Metrics.reconciled(outcomeOfReconcile(mr, err), r.Clock.Since(started))
	return result, err
}

// aside waits for something while another pass may work.
func (r *Reconciler) aside(wait func()) {
	<-r.busy
	defer func() { r.busy <- struct{}{} }()
	wait()
}

// readAfresh reads a ManagedResource past the cache, as nobody knows what became of the last write to it: nothing may be concluded from an
// inventory that is not the stored one. It returns nil if the ManagedResource is gone; then its deletion is an event.
func (r *Reconciler) readAfresh(ctx context.Context, name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.Direct.Get(ctx, name, mr); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ManagedResource %s, since it is not known what became of a write: %w", name, err)
	}
	r.staleReads.Settle(name, mr.ResourceVersion)
	// What the write recorded may be what others wait for.
	r.wakeSharing(name, inventoryOf(mr.Status.Resources, nil))
	return mr, nil
}

func (r *Reconciler) fulfil(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	switch operationFor(mr, r.Options.Class) {
	case opIgnore:
		return r.ignore(ctx, mr)
	case opApply:
		return r.apply(ctx, mr)
	case opCleanUp:
		return r.cleanUp(ctx, mr)
	default:
		return reconcile.Result{}, nil
	}
}

// apply brings the target cluster to the state that the ManagedResource describes.
func (r *Reconciler) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	asked, err := r.prepare(ctx, mr)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := r.newPass(mr)
	if !asked {
		settled, err := p.upToDate(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		if settled {
			// The status may have been written by a request whose answer was lost: then what has left the inventory is still claimed.
			p.claim()
			r.Metrics.settled(p.self.Owner, len(p.recorded))
			if p.watched() {
				r.resting.Add(p.self.Owner, mr.ResourceVersion)
				return reconcile.Result{}, nil
			}
			return reconcile.Result{RequeueAfter: r.Options.SyncPeriod}, nil
		}
	}
	if err := p.gather(ctx); err != nil {
		return reconcile.Result{}, err
	}
	// Only now, so that objects which come from a dependency are claimed before it deletes them.
	if err := p.findGate(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := p.recordInventory(ctx); err != nil {
		return reconcile.Result{}, err
	}
	defer p.Live.SuspendHealth(p.self.String())()
	p.showProgress(ctx, func() { p.realize(ctx) })
	return p.conclude(ctx)
}

// gather reads what is wanted and claims it. The error says why that cannot be told for now; what is wrong with the manifests is a problem
// of the pass.
func (p *pass) gather(ctx context.Context) error {
	if resumed, err := p.resume(ctx); err != nil {
		return err
	} else if !resumed {
		if err := p.readManifests(ctx); err != nil {
			return err
		}
	}
	if err := p.impersonate(ctx); err != nil {
		p.refuse(err)
	}
	p.claim()
	return nil
}

// realize makes the objects as they are wanted.
func (p *pass) realize(ctx context.Context) {
	p.release(ctx)
	p.applyWaves(ctx)
	p.pruneUnwanted(ctx)
}

// ignore says in the condition that the ManagedResource asks to be left alone.
func (r *Reconciler) ignore(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	p := r.newPass(mr)
	status := *mr.Status.DeepCopy()
	status.Conditions = p.conditions(p.unchecked(status.Conditions), verdict{
		resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonManagedResourceIgnored, messageIgnored,
	})
	if equality.Semantic.DeepEqual(status, mr.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, p.storeStatus(ctx, status)
}

// prepare puts the finalizer on the ManagedResource before anything is applied, and takes the request to reconcile off
// it. It reports whether there was one.
func (r *Reconciler) prepare(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (asked bool, err error) {
	finalizer := resourcesv1alpha1.FinalizerOf(r.Options.Class)
	asked = mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationReconcile
	if !asked && controllerutil.ContainsFinalizer(mr, finalizer) {
		return false, nil
	}
	before := mr.DeepCopy()
	controllerutil.AddFinalizer(mr, finalizer)
	if asked {
		delete(mr.Annotations, resourcesv1alpha1.AnnotationOperation)
	}
	if err := r.patchMetadata(ctx, before, mr); err != nil {
		return asked, fmt.Errorf("put the finalizer on ManagedResource %s: %w", client.ObjectKeyFromObject(mr), err)
	}
	return asked, nil
}

// patchMetadata writes what changed in the metadata of a ManagedResource. It fails with a conflict if the ManagedResource is
// not the one that was read.
func (r *Reconciler) patchMetadata(ctx context.Context, before, mr *resourcesv1alpha1.ManagedResource) error {
	body, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(mr)
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	meta := metadataOf(mr)
	patch := client.RawPatch(types.MergePatchType, body)
	if err := r.Source.Patch(ctx, meta, patch, client.FieldOwner(resourcesv1alpha1.FieldManager)); err != nil {
		r.recordFailedWrite(mr, err)
		return err
	}
	mr.ResourceVersion = meta.ResourceVersion
	r.staleReads.Add(client.ObjectKeyFromObject(mr), before.ResourceVersion)
	return nil
}
