package managedresource

import (
	"slices"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// operation is what a resource-manager has to do about a ManagedResource.
type operation int

const (
	// opNone leaves the ManagedResource alone.
	opNone operation = iota
	// opIgnore says that the ManagedResource is left alone because it asks for it.
	opIgnore
	// opApply applies the objects.
	opApply
	// opCleanUp deletes the objects, because the ManagedResource is being deleted or went to another class.
	opCleanUp
)

// operationFor returns what a resource-manager with the given class has to do about a ManagedResource (facts of
// gardener-resource-manager: an ignored one is left alone unless it is being deleted, one that waits for its state always;
// the resource-manager of a former class cleans up before that of the new class starts).
func operationFor(mr *resourcesv1alpha1.ManagedResource, class string) operation {
	ignored := resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore])
	switch {
	case mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState:
		return opNone
	case mr.DeletionTimestamp == nil && ignored:
		if resourcesv1alpha1.HasClass(mr, class) {
			return opIgnore
		}
		return opNone
	case slices.Contains(mr.Finalizers, resourcesv1alpha1.FinalizerOf(class)):
		if mr.DeletionTimestamp != nil || !resourcesv1alpha1.HasClass(mr, class) {
			return opCleanUp
		}
	case mr.DeletionTimestamp != nil || !resourcesv1alpha1.HasClass(mr, class):
		return opNone
	}
	if resourcesv1alpha1.HeldByOther(mr, class) {
		return opNone
	}
	return opApply
}
