package managedresource

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// dependencyNames returns what a ManagedResource depends on, for the index.
func dependencyNames(obj client.Object) []string {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	var names []string
	for _, name := range dependenciesOf(mr) {
		names = append(names, name.String())
	}
	return names
}

// dependingOn returns the ManagedResources that depend on one.
func (r *Reconciler) dependingOn(ctx context.Context, dependency client.Object) []reconcile.Request {
	list := &resourcesv1alpha1.ManagedResourceList{}
	err := r.Source.List(ctx, list, client.MatchingFields{dependencyIndex: client.ObjectKeyFromObject(dependency).String()},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the ManagedResources that depend on one",
			"managedResource", client.ObjectKeyFromObject(dependency))
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// readinessChange lets through what may end the wait of those that depend on a ManagedResource.
func readinessChange() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isManagedResource := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			return ok && isManagedResource && (notReady(before) != notReady(after) ||
				!slices.Equal(dependencyNames(before), dependencyNames(after)))
		},
	}
}
