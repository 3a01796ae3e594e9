package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// DependencyIndex is the index of the resource-manager's cache that finds ManagedResources by their dependencies, as
// "<namespace>/<name>".
const DependencyIndex = "spec.dependsOn"

// Dependencies returns the names of the dependencies of a ManagedResource, in the order of its spec.
func (mr *ManagedResource) Dependencies() []types.NamespacedName {
	names := make([]types.NamespacedName, 0, len(mr.Spec.DependsOn))
	for _, dependency := range mr.Spec.DependsOn {
		names = append(names, dependency.NameFrom(mr.Namespace))
	}
	return names
}

// NameFrom returns the name of a dependency of a ManagedResource in a namespace.
func (d Dependency) NameFrom(namespace string) types.NamespacedName {
	if d.Namespace != "" {
		namespace = d.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: d.Name}
}

// DeletedAfter returns the names in deleteAfter. Set is false if the field is not set. The ManagedResource is then
// deleted after its dependents.
func (mr *ManagedResource) DeletedAfter() (names []types.NamespacedName, set bool) {
	for _, reference := range mr.Spec.DeleteAfter {
		names = append(names, Dependency{Name: reference.Name, Namespace: reference.Namespace}.NameFrom(mr.Namespace))
	}
	return names, mr.Spec.DeleteAfter != nil
}
