// Package managedresource reconciles ManagedResources: it reads the manifests in their Secrets, applies them to the
// target cluster, deletes what is no longer wanted, and reports the result in the condition ResourcesApplied.
package managedresource

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
)

const (
	// pendingInterval is how soon objects that are waited for are checked if they are not watched.
	pendingInterval = time.Second
	// deletionStatusInterval is how often the status of a ManagedResource that is being deleted reports what is left, and deletionStatusAfter
	// how long its deletion may take before it does: most have ended by then.
	deletionStatusInterval = 5 * time.Second
	deletionStatusAfter    = 3 * time.Second
	// dueMargin is how much later than due something is looked at again: clocks of API servers show whole seconds.
	dueMargin = 50 * time.Millisecond
	// watchedInterval is the same for objects that are watched.
	watchedInterval = 30 * time.Second
	// outdatedInterval is how soon a ManagedResource is looked at again that was read in an outdated state.
	outdatedInterval = 200 * time.Millisecond
)

// pass is one reconcile of one ManagedResource. Its fields are set once: what its steps read, decide and do are values that they return.
type pass struct {
	*Reconciler
	// mr is the ManagedResource as it is stored: it changes with each write of its status.
	mr        *resourcesv1alpha1.ManagedResource
	self      resourcesv1alpha1.Origin
	operation operation
	// asked is set if the operation "reconcile" asked for this pass: all is sent, and nothing waits for dependencies.
	asked bool
	// engine writes to the target cluster, as the ServiceAccount that the ManagedResource names, if it names one.
	engine *apply.Engine
	// started is when the pass began.
	started time.Time
	// preview is set if the pass changes nothing.
	preview bool
}

func (r *Reconciler) newPass(mr *resourcesv1alpha1.ManagedResource) *pass {
	return &pass{
		Reconciler: r,
		mr:         mr,
		self:       resourcesv1alpha1.Origin{ClusterID: r.Options.ClusterID, Owner: client.ObjectKeyFromObject(mr)},
		operation:  operationFor(mr, r.Options.Class),
		engine:     r.Engine,
		started:    r.Clock.Now(),
	}
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

// aside calls wait, and lets another pass work meanwhile.
func (r *Reconciler) aside(wait func()) {
	<-r.busy
	defer func() { r.busy <- struct{}{} }()
	wait()
}

// readAfresh reads a ManagedResource past the cache, as it is not known whether the last write to it succeeded: decisions must rest on
// the stored inventory. It returns nil if the ManagedResource is gone; then its deletion is an event.
func (r *Reconciler) readAfresh(ctx context.Context, name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.Direct.Get(ctx, name, mr); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ManagedResource %s, since it is not known whether a write succeeded: %w", name, err)
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
	p.asked = asked
	if !asked {
		if current, recorded, err := p.upToDate(ctx); err != nil {
			return reconcile.Result{}, err
		} else if current {
			return p.rest(recorded), nil
		}
	}
	in, err := p.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.claim(in)
	// Only after the claim, so that a dependency that deletes an object sees that this ManagedResource takes it over.
	var gate gate
	if len(mr.Spec.DependsOn) > 0 {
		if gate, err = p.findGate(ctx, in); err != nil {
			return reconcile.Result{}, err
		}
	}
	plan, err := p.record(ctx, in, gate)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer p.Live.SuspendHealth(p.self.String())()
	done := p.showProgress(ctx, in, func() changeSet { return p.carryOut(ctx, plan) })
	return p.conclude(ctx, plan, done)
}

// rest ends the pass of a ManagedResource whose objects are all as they were applied.
func (p *pass) rest(recorded input) reconcile.Result {
	p.claim(recorded) // the last status may have been written by a request whose answer was lost: its claims are not up to date then
	p.Metrics.settled(p.self.Owner, len(recorded.recorded))
	if p.watched(recorded.recorded) {
		p.resting.Add(p.self.Owner, p.mr.ResourceVersion)
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: p.Options.SyncPeriod}
}

// carryOut releases, applies and prunes objects as planned.
func (p *pass) carryOut(ctx context.Context, plan plan) changeSet {
	released := p.release(ctx, plan)
	applied, kinds := p.applyWaves(ctx, plan)
	pruned, guarded := p.pruneUnwanted(ctx, plan)
	return changeSet{changes: slices.Concat(released, applied, pruned), guarded: guarded, kinds: kinds}
}

// ignore sets the conditions of a ManagedResource that asks to be ignored.
func (r *Reconciler) ignore(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	p := r.newPass(mr)
	status := *mr.Status.DeepCopy()
	status.Conditions = p.conditions(p.unchecked(status.Conditions),
		resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonManagedResourceIgnored, messageIgnored))
	if equality.Semantic.DeepEqual(status, mr.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, p.storeStatus(ctx, status)
}

// prepare adds the finalizer to the ManagedResource before anything is applied, and removes the request to reconcile. It reports whether
// there was one.
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

// operation is what a resource-manager has to do about a ManagedResource.
type operation int

const (
	// opNone leaves the ManagedResource alone.
	opNone operation = iota
	// opIgnore says that the ManagedResource is left alone because it asks for it.
	opIgnore
	// opApply applies the objects.
	opApply
	// opCleanUp deletes the objects, because the ManagedResource is being deleted or went to another class.
	opCleanUp
)

// operationFor returns what a resource-manager with the given class has to do about a ManagedResource (facts of
// gardener-resource-manager: an ignored one is left alone unless it is being deleted, one that waits for its state always;
// the resource-manager of a former class cleans up before that of the new class starts).
func operationFor(mr *resourcesv1alpha1.ManagedResource, class string) operation {
	ignored := resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore])
	switch {
	case mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState:
		return opNone
	case mr.DeletionTimestamp == nil && ignored:
		if resourcesv1alpha1.HasClass(mr, class) {
			return opIgnore
		}
		return opNone
	case slices.Contains(mr.Finalizers, resourcesv1alpha1.FinalizerOf(class)):
		if mr.DeletionTimestamp != nil || !resourcesv1alpha1.HasClass(mr, class) {
			return opCleanUp
		}
	case mr.DeletionTimestamp != nil || !resourcesv1alpha1.HasClass(mr, class):
		return opNone
	}
	if resourcesv1alpha1.HeldByOther(mr, class) {
		return opNone
	}
	return opApply
}
