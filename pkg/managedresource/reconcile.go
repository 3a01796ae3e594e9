// Package managedresource reconciles ManagedResources: it reads the manifests in their Secrets, applies them to the
// target cluster, deletes objects that are no longer wanted, and reports the result in the condition ResourcesApplied.
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
	// pendingInterval is how often pending objects are checked if no watch covers them.
	pendingInterval = time.Second
	// deletionStatusInterval is how often the status of a ManagedResource that is being deleted reports the remaining
	// objects. The first report is due after deletionStatusAfter. Most deletions have finished by then.
	deletionStatusInterval = 5 * time.Second
	deletionStatusAfter    = 3 * time.Second
	// dueMargin is added to the time at which a check is due, because API servers round timestamps to seconds.
	dueMargin = 50 * time.Millisecond
	// watchedInterval is how often pending objects are checked if a watch covers them.
	watchedInterval = 30 * time.Second
	// outdatedInterval is the delay before a ManagedResource that was read in an outdated state is reconciled again.
	outdatedInterval = 200 * time.Millisecond
)

// pass is one reconcile of one ManagedResource. Its fields are set once. Its steps return the data that they read,
// their decisions and their results as values.
type pass struct {
	*Reconciler
	// mr is the stored ManagedResource. Each write of the status updates it.
	mr        *resourcesv1alpha1.ManagedResource
	self      resourcesv1alpha1.Origin
	operation operation
	// requested is set if the operation "reconcile" requested this pass. All objects are then sent, and no change waits for
	// dependencies.
	requested bool
	// engine writes to the target cluster. It impersonates the ServiceAccount of the ManagedResource, if there is one.
	engine *apply.Engine
	// started is the start time of the pass.
	started time.Time
	// preview is set if the pass does not change anything.
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

// Reconcile reconciles one ManagedResource. It returns an error only if a retry can help.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.workerSlots <- struct{}{}
	defer func() { <-r.workerSlots }()
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
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil // the cache does not contain our own last write yet
	}
	if r.staleReads.Uncertain(request.NamespacedName) {
		if mr, err = r.readUncached(ctx, request.NamespacedName); mr == nil || err != nil {
			return reconcile.Result{}, err
		}
	}
	if ready, err := r.warmUp(ctx); err != nil {
		return reconcile.Result{}, err
	} else if !ready {
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil
	}
	started := r.Clock.Now()
	result, err := r.reconcileOperation(ctx, mr)
	if apierrors.IsConflict(err) {
		// The cache was outdated. This is not a failure, and the next reconcile reads the current state.
		result, err = reconcile.Result{RequeueAfter: outdatedInterval}, nil
	}
	r.Metrics.reconciled(outcomeOfReconcile(mr, err), r.Clock.Since(started))
	return result, err
}

// releaseWorkerWhile runs wait without occupying a worker slot.
func (r *Reconciler) releaseWorkerWhile(wait func()) {
	<-r.workerSlots
	defer func() { r.workerSlots <- struct{}{} }()
	wait()
}

// readUncached reads a ManagedResource from the API server, because it is unknown whether the last write to it
// succeeded and decisions must be based on the stored inventory. It returns nil if the ManagedResource does not exist.
// Its deletion is then an event.
func (r *Reconciler) readUncached(ctx context.Context, name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.Direct.Get(ctx, name, mr); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ManagedResource %s, because it is unknown whether a write succeeded: %w", name, err)
	}
	r.staleReads.Resolve(name, mr.ResourceVersion)
	// Other ManagedResources may wait for the inventory of that write.
	r.enqueueSharing(name, inventoryOf(mr.Status.Resources, nil))
	return mr, nil
}

// reconcileOperation executes the operation that the ManagedResource requires.
func (r *Reconciler) reconcileOperation(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
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

// apply applies the manifests of a ManagedResource to the target cluster and prunes objects that are no longer wanted,
// unless nothing has changed since the last complete reconcile.
func (r *Reconciler) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	requested, err := r.prepare(ctx, mr)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := r.newPass(mr)
	p.requested = requested
	if !requested {
		if current, recorded, err := p.upToDate(ctx); err != nil {
			return reconcile.Result{}, err
		} else if current {
			return p.finishUnchanged(recorded), nil
		}
	}
	in, err := p.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.claim(in)
	// This is done after the claim, so that a dependency that deletes an object sees that this ManagedResource takes it
	// over.
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
	done := p.showProgress(ctx, in, func() changeSet { return p.execute(ctx, plan) })
	return p.conclude(ctx, plan, done)
}

// finishUnchanged ends the pass of a ManagedResource none of whose objects has changed since it was applied.
func (p *pass) finishUnchanged(recorded input) reconcile.Result {
	p.claim(recorded) // if the response to the last write of the status was lost, the claims are outdated
	p.Metrics.settled(p.self.Owner, len(recorded.recorded))
	if p.watched(recorded.recorded) {
		p.resting.Add(p.self.Owner, p.mr.ResourceVersion)
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: p.Options.SyncPeriod}
}

// execute releases, applies and prunes objects according to the plan.
func (p *pass) execute(ctx context.Context, plan plan) changeSet {
	released := p.release(ctx, plan)
	applied, kinds := p.applyWaves(ctx, plan)
	pruned, guarded := p.pruneUnwanted(ctx, plan)
	return changeSet{changes: slices.Concat(released, applied, pruned), guarded: guarded, kinds: kinds}
}

// ignore sets the conditions of a ManagedResource with the annotation resources.gardener.cloud/ignore.
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

// prepare adds the finalizer to the ManagedResource before anything is applied, and removes the annotation that
// requests the operation "reconcile". It reports whether there was one.
func (r *Reconciler) prepare(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (requested bool, err error) {
	finalizer := resourcesv1alpha1.FinalizerOf(r.Options.Class)
	requested = mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationReconcile
	if !requested && controllerutil.ContainsFinalizer(mr, finalizer) {
		return false, nil
	}
	before := mr.DeepCopy()
	controllerutil.AddFinalizer(mr, finalizer)
	if requested {
		delete(mr.Annotations, resourcesv1alpha1.AnnotationOperation)
	}
	if err := r.patchMetadata(ctx, before, mr); err != nil {
		return requested, fmt.Errorf("add the finalizer to ManagedResource %s: %w", client.ObjectKeyFromObject(mr), err)
	}
	return requested, nil
}

// patchMetadata writes the changes of the metadata of a ManagedResource. It returns a conflict if the ManagedResource
// has changed since it was read.
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

// operation is what a resource-manager does with a ManagedResource.
type operation int

const (
	// opNone does nothing.
	opNone operation = iota
	// opIgnore only sets conditions, because the ManagedResource has the annotation resources.gardener.cloud/ignore.
	opIgnore
	// opApply applies the objects.
	opApply
	// opCleanUp deletes the objects, because the ManagedResource is being deleted or its class has changed.
	opCleanUp
)

// operationFor returns the operation of a resource-manager with the given class for a ManagedResource. The rules are
// those of gardener-resource-manager: an ignored ManagedResource is left alone unless it is being deleted, and one that
// waits for its state in any case. The resource-manager of the former class cleans up before the one of the new class
// starts.
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
