package managedresource

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

// dependencyNames returns what a ManagedResource depends on, for the index.
func dependencyNames(obj client.Object) []string {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	return namesOf(mr.Dependencies())
}

// dependingOn returns the ManagedResources that depend on one.
func (r *Reconciler) dependingOn(ctx context.Context, dependency client.Object) []reconcile.Request {
	names, err := r.dependents(ctx, client.ObjectKeyFromObject(dependency))
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the ManagedResources that depend on one")
	}
	return requestsFor(names)
}

func requestsFor(names []types.NamespacedName) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}

// hasDependents reports whether another ManagedResource depends on this one. It errs on the side of caution.
func (p *pass) hasDependents(ctx context.Context) bool {
	names, err := p.dependents(ctx, p.self.Owner)
	return err != nil || len(names) > 0
}

// readinessChange lets through what may end the wait of those that depend on a ManagedResource.
func readinessChange() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isManagedResource := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			return ok && isManagedResource && (readiness(before) != readiness(after) ||
				!slices.Equal(dependencyNames(before), dependencyNames(after)))
		},
	}
}
