package flow

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Canonical returns a copy of an object that is safe to use in a bundle or in the inputs of a flow. It keeps only the
// named status fields and drops the metadata that changes with each write. Otherwise a flow would trigger itself: a
// copy of an owner with its progress would be written on each step of that progress.
func Canonical(obj *unstructured.Unstructured, status ...string) *unstructured.Unstructured {
	canonical := obj.DeepCopy()
	for _, field := range []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(canonical.Object, "metadata", field)
	}
	before, _ := canonical.Object["status"].(map[string]any)
	kept := map[string]any{}
	for _, field := range status {
		if value, found := before[field]; found {
			kept[field] = value
		}
	}
	maps.DeleteFunc(kept, func(_ string, value any) bool { return value == nil })
	delete(canonical.Object, "status")
	if len(kept) > 0 {
		canonical.Object["status"] = kept
	}
	return canonical
}
