package networkpolicy

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

// Selector selects the ManagedResources with policies, also those that the operator has released.
func Selector() labels.Selector {
	either, err := labels.NewRequirement(flow.LabelFlow, selection.In, []string{FlowName, flow.FlowReleased})
	if err != nil {
		return labels.Nothing() // does not happen: key and values are constants
	}
	return labels.NewSelector().Add(*either)
}

// ForSeed sets the fields that depend on the Subject for a Seed in a cache of the garden. If the seed is also the runtime cluster of a garden, all
// policies are handed over to the operator.
func (r *Reconciler) ForSeed(garden cache.Cache, name string, facts *seedfacts.Reader) *Reconciler {
	isSeed := predicate.NewPredicateFuncs(func(seed client.Object) bool { return seed.GetName() == name })
	r.Facts = facts
	r.Changes = []source.Source{
		source.Kind[client.Object](garden, &gardencorev1beta1.Seed{}, ToAll(), isSeed, predicate.GenerationChangedPredicate{}),
	}
	r.Subject = func(ctx context.Context) (*Subject, error) {
		seed := &gardencorev1beta1.Seed{}
		if err := garden.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		known, err := facts.Get(ctx)
		if err != nil {
			return nil, err
		}
		return &Subject{
			UID: seed.UID, Name: seed.Name, Networks: networkpolicies.OfSeed(seed.Spec.Networks), Deleting: seed.DeletionTimestamp != nil,
			Released: known.Cluster().IsOperators(inventory.NetworkPolicies),
		}, nil
	}
	return r
}
