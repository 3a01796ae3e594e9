package flow

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Canonical returns an object as it may be put into a bundle, or into the inputs of a flow, without leading back to the flow: with the named
// fields of its status alone, and without what changes with each write. A copy of an owner that has its progress would be written with
// each step of that progress.
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
