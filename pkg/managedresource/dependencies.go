package managedresource

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// lookup returns a ManagedResource, nil if there is none.
type lookup func(types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error)

// dependenciesOf returns what a ManagedResource depends on.
func dependenciesOf(mr *resourcesv1alpha1.ManagedResource) []types.NamespacedName {
	names := make([]types.NamespacedName, 0, len(mr.Spec.DependsOn))
	for _, dependency := range mr.Spec.DependsOn {
		name := types.NamespacedName{Namespace: dependency.Namespace, Name: dependency.Name}
		if name.Namespace == "" {
			name.Namespace = mr.Namespace
		}
		names = append(names, name)
	}
	return names
}

// gateOf returns what keeps the changes of a ManagedResource waiting.
func gateOf(mr *resourcesv1alpha1.ManagedResource, get lookup) (gate, error) {
	if len(mr.Spec.DependsOn) == 0 {
		return gate{}, nil
	}
	self := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
	cycle, err := findCycle(self, dependenciesOf(mr), []types.NamespacedName{self}, map[types.NamespacedName]bool{}, get)
	if err != nil {
		return gate{}, err
	}
	if cycle != nil {
		found := gate{cycle: cycle}
		// It is said again as long as it is all that is said: the next look has no other sign that this one has closed the cycle.
		said := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied).Message
		found.closedHere = mr.Status.ObservedGeneration != mr.Generation || said == found.why()
		return found, nil
	}
	var waits []string
	for _, name := range dependenciesOf(mr) {
		dependency, err := get(name)
		if err != nil {
			return gate{}, err
		}
		if why := notReady(dependency); why != "" {
			waits = append(waits, fmt.Sprintf("ManagedResource %s %s", name, why))
		}
	}
	slices.Sort(waits)
	return gate{waits: waits}, nil
}

// notReady says why a dependency is not applied and healthy; empty if it is. It names reasons and not messages, which change
// often: the status of each dependent would be written with each of them.
func notReady(mr *resourcesv1alpha1.ManagedResource) string {
	if mr == nil {
		return "does not exist"
	}
	if mr.DeletionTimestamp != nil {
		return "is being deleted"
	}
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	switch {
	case mr.Status.ObservedGeneration != mr.Generation:
		return fmt.Sprintf("is not applied: its generation %d has not been observed", mr.Generation)
	case applied.Status != resourcesv1alpha1.ConditionTrue:
		return "is not applied: " + cmp.Or(applied.Reason, "no condition says so")
	case healthy.Status != resourcesv1alpha1.ConditionTrue:
		return "is not healthy: " + cmp.Or(healthy.Reason, "no condition says so")
	}
	return ""
}

// findCycle returns the path of dependencies that leads back to self, nil if there is none.
func findCycle(self types.NamespacedName, next, path []types.NamespacedName, seen map[types.NamespacedName]bool, get lookup,
) ([]types.NamespacedName, error) {
	for _, name := range next {
		step := append(slices.Clone(path), name)
		if name == self {
			return step, nil
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		mr, err := get(name)
		if err != nil {
			return nil, err
		}
		if mr == nil {
			continue
		}
		if cycle, err := findCycle(self, dependenciesOf(mr), step, seen, get); cycle != nil || err != nil {
			return cycle, err
		}
	}
	return nil, nil
}

func joinNames(names []types.NamespacedName) string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, name.String())
	}
	return strings.Join(texts, " → ")
}

// findGate finds out what the changes of this pass have to wait for. If the inputs are the applied ones, there is nothing to hold.
func (p *pass) findGate(ctx context.Context, in input) (gate, error) {
	found, err := gateOf(p.mr, func(name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
		return in.owners.Other(ctx, name)
	})
	if err != nil || found.open() {
		return gate{}, err
	}
	inputs, err := p.inputs(ctx, in.secrets, in.scalers, slices.Collect(maps.Keys(in.recorded)))
	if err != nil || inputs == p.mr.Status.AppliedInputs {
		return gate{}, err
	}
	return found, nil
}

// recordable returns the manifests whose objects belong in the inventory while changes wait. These are the ones whose objects exist: their present owner keeps them until they are in this inventory, and may be a dependency that goes.
func (p *pass) recordable(ctx context.Context, in input) []object.Manifest {
	added := slices.DeleteFunc(slices.Clone(in.manifests), func(manifest object.Manifest) bool { return in.recorded.has(manifest.Key()) })
	states := p.Live.Read(ctx, refsOf(added))
	return slices.DeleteFunc(added, func(manifest object.Manifest) bool { return states[manifest.Key()].Presence != live.Present })
}
