package managedresource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/message"
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

// checkDependencies returns what a ManagedResource has to say while it must not be applied; nil if it may.
func checkDependencies(mr *resourcesv1alpha1.ManagedResource, get lookup) (*verdict, error) {
	if len(mr.Spec.DependsOn) == 0 {
		return nil, nil
	}
	self := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
	cycle, err := findCycle(self, dependenciesOf(mr), []types.NamespacedName{self}, map[types.NamespacedName]bool{}, get)
	if err != nil {
		return nil, err
	}
	if cycle != nil {
		return &verdict{resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDependencyCycle,
			"ManagedResources wait for each other: " + joinNames(cycle) + ": remove one of these dependencies"}, nil
	}
	var waits []string
	for _, name := range dependenciesOf(mr) {
		dependency, err := get(name)
		if err != nil {
			return nil, err
		}
		if why := notReady(dependency); why != "" {
			waits = append(waits, fmt.Sprintf("ManagedResource %s %s", name, why))
		}
	}
	if len(waits) == 0 {
		return nil, nil
	}
	slices.Sort(waits)
	return &verdict{resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDependencyNotReady,
		message.ForCondition("Waiting: " + strings.Join(waits, "; "))}, nil
}

// notReady says why a dependency is not applied and healthy; empty if it is.
func notReady(mr *resourcesv1alpha1.ManagedResource) string {
	if mr == nil {
		return "does not exist"
	}
	if mr.Status.ObservedGeneration != mr.Generation ||
		resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied).Status != resourcesv1alpha1.ConditionTrue {
		return "is not applied"
	}
	if resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy).Status != resourcesv1alpha1.ConditionTrue {
		return "is not healthy"
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

// dependencies returns what there is to say while dependencies are not ready; nil if nothing is to be waited for.
func (p *pass) dependencies(ctx context.Context) (*verdict, error) {
	return checkDependencies(p.mr, func(name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
		return p.other(ctx, name)
	})
}
