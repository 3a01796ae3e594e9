package controller

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// dependentsOnly is a fake cache that can list ManagedResources only by their dependencies.
type dependentsOnly struct {
	client.Client
	name string
	err  error
}

func (c dependentsOnly) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if asked.FieldSelector == nil {
		return errors.New("all ManagedResources are listed")
	}
	mrs, _ := list.(*resourcesv1alpha1.ManagedResourceList)
	if value, found := asked.FieldSelector.RequiresExactMatch("spec.dependsOn"); found && value == c.name {
		mrs.Items = make([]resourcesv1alpha1.ManagedResource, 1)
	}
	return c.err
}

// TestAwaited checks that only the dependents of a ManagedResource are listed, because this happens at each reconcile that
// reports less than it found.
func TestAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		source dependentsOnly
		want   bool
	}{
		"awaited":      {dependentsOnly{name: "garden/shop"}, true},
		"not awaited":  {dependentsOnly{name: "garden/bank"}, false},
		"not readable": {dependentsOnly{name: "garden/bank", err: errors.New("the cache is not in sync")}, true},
	} {
		r := NewReconciler(Reconciler{Source: test.source})
		if got := r.awaited(t.Context(), shop); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
