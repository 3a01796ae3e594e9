package controller

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// dependentsOnly is a cache that lists ManagedResources by what they depend on, and in no other way.
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

// TestAwaited: only the ManagedResources that depend on one are listed, as this happens with each look that reports less than it found.
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
