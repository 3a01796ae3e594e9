// Package reduce removes from cached objects the fields that are not read.
package reduce

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Meta returns only the metadata that identifies objects and their versions, and whether an object is being deleted. Objects of one
// namespace share its name's memory.
func Meta(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: Shared(object.GetNamespace()), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), DeletionTimestamp: object.GetDeletionTimestamp(),
	}
}

// Only returns what a map has of some keys; nil if that is nothing.
func Only(values map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, found := values[key]; found {
			kept = with(kept, key, value)
		}
	}
	return kept
}

// Selected returns what a map has of the keys for which keep returns true; nil if that is nothing.
func Selected(values map[string]string, keep func(key string) bool) map[string]string {
	var kept map[string]string
	for key, value := range values {
		if keep(key) {
			kept = with(kept, key, value)
		}
	}
	return kept
}

func with(values map[string]string, key, value string) map[string]string {
	if values == nil {
		values = map[string]string{}
	}
	values[key] = value
	return values
}

// Shared returns a text that equal texts share their memory with.
func Shared(text string) string { return unique.Make(text).Value() }
