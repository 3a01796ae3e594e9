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

// gatesOf returns the dependencies that gate the changes of a ManagedResource now: what is for the creation counts until all was applied
// once.
func gatesOf(mr *resourcesv1alpha1.ManagedResource) []resourcesv1alpha1.Dependency {
	created := mr.Status.SecretsDataChecksum != nil
	return slices.DeleteFunc(slices.Clone(mr.Spec.DependsOn), func(dependency resourcesv1alpha1.Dependency) bool {
		return created && dependency.For == resourcesv1alpha1.ForCreation
	})
}

// gateNamesOf returns the names of gatesOf.
func gateNamesOf(mr *resourcesv1alpha1.ManagedResource) []types.NamespacedName {
	var names []types.NamespacedName
	for _, dependency := range gatesOf(mr) {
		names = append(names, dependency.NameFrom(mr.Namespace))
	}
	return names
}

// gateOf returns what keeps the changes of a ManagedResource waiting.
func gateOf(mr *resourcesv1alpha1.ManagedResource, get lookup) (gate, error) {
	gates := gatesOf(mr)
	if len(gates) == 0 {
		return gate{}, nil
	}
	cycle, err := cycleOf(mr, get)
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
	for _, edge := range gates {
		name := edge.NameFrom(mr.Namespace)
		dependency, err := get(name)
		if err != nil {
			return gate{}, err
		}
		if why := notReady(dependency, edge.Until); why != "" {
			waits = append(waits, fmt.Sprintf("ManagedResource %s %s", name, why))
		}
	}
	slices.Sort(waits)
	return gate{waits: waits}, nil
}

// cycleOf returns the path of dependencies that leads from a ManagedResource back to it, nil if it is not part of a cycle.
func cycleOf(mr *resourcesv1alpha1.ManagedResource, get lookup) ([]types.NamespacedName, error) {
	self, seen := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}, map[types.NamespacedName]bool{}
	for _, name := range gateNamesOf(mr) {
		path, err := pathBack(self, name, []types.NamespacedName{self}, seen, func(name types.NamespacedName) ([]types.NamespacedName, error) {
			dependency, err := get(name)
			if dependency == nil || err != nil {
				return nil, err
			}
			return gateNamesOf(dependency), nil
		})
		if path != nil || err != nil {
			return path, err
		}
	}
	return nil, nil
}

// notReady says why a dependency has not reached what is waited for; empty if it has. It names reasons and no messages, which change
// often: each waiting ManagedResource would be written with each of them.
func notReady(mr *resourcesv1alpha1.ManagedResource, until resourcesv1alpha1.DependencyUntil) string {
	if mr == nil {
		return "does not exist"
	}
	if mr.DeletionTimestamp != nil {
		return "is being deleted"
	}
	conditions := mr.Status.Conditions
	applied := resourcesv1alpha1.ConditionOf(conditions, resourcesv1alpha1.ResourcesApplied)
	healthy := resourcesv1alpha1.ConditionOf(conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := resourcesv1alpha1.ConditionOf(conditions, resourcesv1alpha1.ResourcesProgressing)
	const noCondition = "no condition says so"
	switch {
	case mr.Status.ObservedGeneration != mr.Generation:
		return fmt.Sprintf("is not applied: its generation %d has not been observed", mr.Generation)
	case applied.Status != resourcesv1alpha1.ConditionTrue:
		return "is not applied: " + cmp.Or(applied.Reason, noCondition)
	case until == resourcesv1alpha1.UntilApplied:
		return ""
	case healthy.Status != resourcesv1alpha1.ConditionTrue:
		return "is not healthy: " + cmp.Or(healthy.Reason, noCondition)
	case mr.Status.FoundUnhealthy != "" && healthy.Reason != resourcesv1alpha1.ReasonManagedResourceIgnored:
		return "is not healthy: " + mr.Status.FoundUnhealthy
	case until == resourcesv1alpha1.UntilRolledOut && progressing.Status != resourcesv1alpha1.ConditionFalse:
		return "is not rolled out: " + cmp.Or(progressing.Reason, noCondition)
	}
	return ""
}

// readiness says why a ManagedResource has not reached each of what others may wait for.
func readiness(mr *resourcesv1alpha1.ManagedResource) [3]string {
	return [3]string{
		notReady(mr, resourcesv1alpha1.UntilApplied), notReady(mr, resourcesv1alpha1.UntilHealthy), notReady(mr, resourcesv1alpha1.UntilRolledOut),
	}
}

func joinNames(names []types.NamespacedName) string { return strings.Join(namesOf(names), " → ") }

// namesOf returns names as texts.
func namesOf(names []types.NamespacedName) []string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, name.String())
	}
	return texts
}

// findGate finds out what the changes of this pass have to wait for. If the inputs are the applied ones, there is nothing to hold. The operation
// "reconcile" opens the gate, so that a repair need not wait for a dependency that it repairs.
func (p *pass) findGate(ctx context.Context, in input) (gate, error) {
	if p.asked {
		return gate{}, nil
	}
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
