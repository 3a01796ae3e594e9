package garden

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/networkpolicy"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

// isSeed reports whether the runtime cluster is also a seed.
func (in Inputs) isSeed() bool { return len(in.SeedBundles) > 0 }

// shares reports whether gardenlet has a part if there is no Garden.
func (in Inputs) shares(name string) bool {
	return inventory.Cluster{Garden: true, Istio: slices.Contains(in.SeedBundles, inventory.Gateways)}.IsOperators(name)
}

// notHandedOver returns that gardenlet still has a bundle that is now the operator's, empty if it has not.
func (in Inputs) notHandedOver(name string) string {
	if !slices.Contains(in.SeedBundles, name) {
		return ""
	}
	return fmt.Sprintf("the gardenlet of the runtime cluster has not handed over ManagedResource %s/%s yet: it must run, in the version of this operator",
		in.Namespace, name)
}

// released returns the tombstone of a bundle that a seed needs after the Garden is deleted: gardenlet adopts what both would deploy. Until gardenlet
// has applied its own revision, Pods have the PriorityClasses of the garden, which are kept.
func (in Inputs) released(key flow.Key) (flow.Tombstone, bool) {
	switch {
	case !in.isSeed():
		return flow.Tombstone{}, false
	case in.shares(key.Name):
		return flow.Tombstone{Key: key, Release: flow.ReleaseBundle}, true
	case key.Name == bundleSystem:
		return flow.Tombstone{Key: key, Release: flow.ReleaseObjects}, true
	}
	return flow.Tombstone{}, false
}

// observeSeed reads which bundles gardenlet has in the runtime cluster.
func (r *reconciler) observeSeed(ctx context.Context, in *Inputs) error {
	var list resourcesv1alpha1.ManagedResourceList
	if err := r.caches.runtime.List(ctx, &list, client.InNamespace(in.Namespace), client.MatchingLabels{flow.LabelFlow: inventory.FlowSeed},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ManagedResources of gardenlet in namespace %s: %w", in.Namespace, err)
	}
	for i := range list.Items {
		in.SeedBundles = append(in.SeedBundles, list.Items[i].Name)
	}
	slices.Sort(in.SeedBundles)
	return nil
}

// ofSeed passes ManagedResources that gardenlet begins or ceases to have.
func ofSeed() predicate.Predicate {
	has := func(object client.Object) bool { return object.GetLabels()[flow.LabelFlow] == inventory.FlowSeed }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return has(e.ObjectOld) != has(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return has(e.Object) },
	}
}

// policiesLeft returns the network policies of the Garden that still exist. Their controller deletes them, or hands them over to gardenlet.
func (p *pass) policiesLeft(ctx context.Context) ([]flow.Key, error) {
	owner := flow.Owner{Flow: networkpolicy.FlowName, UID: p.in.Owner.UID, Name: p.in.Owner.Name}
	return flow.Remaining(ctx, p.uncached, owner, p.in.Namespace)
}
