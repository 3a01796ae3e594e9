package managedresource

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// cleanUp deletes the objects of a ManagedResource, after the ManagedResources that must be deleted first, and then
// removes the finalizer.
func (r *Reconciler) cleanUp(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	p := r.newPass(mr)
	plan := plan{input: p.stored(p.resolveScopes(p.Objects.Discover, nil))}
	p.claim(plan.input)
	var err error
	if plan.deletionOrder, err = p.findDeletionOrder(ctx, plan.owners); err != nil {
		return reconcile.Result{}, err
	}
	if len(plan.deletionOrder.waits) > 0 {
		return p.awaitDeletions(ctx, plan.deletionOrder)
	}
	var done changeSet
	if !ptr.Deref(mr.Spec.KeepObjects, false) {
		if mr.Spec.ServiceAccountName != "" || p.Options.NamespaceServiceAccounts {
			if err := p.impersonate(ctx); err != nil {
				plan.input = plan.refused(err)
				return p.conclude(ctx, plan, done)
			}
		}
		done.changes = p.newPruning(ctx, plan).prune(ctx, plan.recorded)
		if len(done.remaining(plan.recorded)) > 0 {
			return p.conclude(ctx, plan, done)
		}
	}
	p.emitEvents(ctx, done)
	if mr.DeletionTimestamp == nil {
		// A resource-manager of another class takes over, perhaps with another target cluster, where the objects of this
		// inventory do not exist.
		if err := p.storeStatus(ctx, p.withoutInventory()); err != nil {
			return reconcile.Result{}, err
		}
	}
	for key := range plan.recorded {
		r.fights.Forget(key)
	}
	r.forget(p.self.Owner)
	return reconcile.Result{}, r.removeFinalizer(ctx, mr)
}

// forget deletes the state that is kept in memory for a ManagedResource.
func (r *Reconciler) forget(owner types.NamespacedName) {
	r.setClaims(owner, nil)
	r.pruneDelays.Update(owner, nil, time.Time{})
	r.deleted.Forget(owner)
	r.unrecorded.Forget(owner)
	r.suspended.take(owner)
	r.acceptedFields.Set(owner, nil)
	r.Metrics.forget(owner)
}

func (r *Reconciler) removeFinalizer(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	before := mr.DeepCopy()
	if !controllerutil.RemoveFinalizer(mr, resourcesv1alpha1.FinalizerOf(r.Options.Class)) {
		return nil
	}
	err := r.patchMetadata(ctx, before, mr)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from ManagedResource %s: %w", client.ObjectKeyFromObject(mr), err)
	}
	return nil
}
