package controller

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// unreported returns the reason why objects are not healthy while the condition still reports that they are; empty
// otherwise.
func unreported(found, reported resourcesv1alpha1.Statement) string {
	if reported.Status != resourcesv1alpha1.ConditionTrue || found.Status == resourcesv1alpha1.ConditionTrue {
		return ""
	}
	return found.Reason
}

// foundUnhealthy returns the value for status.foundUnhealthy. It is set only if another ManagedResource depends on this
// one, to save writes.
func (r *Reconciler) foundUnhealthy(
	ctx context.Context, mr *resourcesv1alpha1.ManagedResource, found, reported resourcesv1alpha1.Statement,
) string {
	reason := unreported(found, reported)
	if reason == "" || !r.awaited(ctx, client.ObjectKeyFromObject(mr)) {
		return ""
	}
	return reason
}

// awaited reports whether another ManagedResource depends on this one, according to the index of the controller of
// ManagedResources. If the index cannot be read, it returns true.
func (r *Reconciler) awaited(ctx context.Context, name types.NamespacedName) bool {
	list := &resourcesv1alpha1.ManagedResourceList{}
	err := r.Source.List(ctx, list,
		client.MatchingFields{resourcesv1alpha1.DependencyIndex: name.String()}, client.Limit(1), client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the ManagedResources that depend on one", "managedResource", name)
		return true
	}
	return len(list.Items) > 0
}

// awaitedBy returns requests for the dependencies of a ManagedResource. They are reconciled again because their status
// reports more once others depend on them.
func awaitedBy(_ context.Context, dependent client.Object) []reconcile.Request {
	mr, ok := dependent.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range mr.Dependencies() {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}

// newDependencies passes ManagedResources whose dependencies changed.
func newDependencies() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isManagedResource := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			return ok && isManagedResource && !slices.Equal(before.Dependencies(), after.Dependencies())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
