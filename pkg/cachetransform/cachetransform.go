// Package cachetransform removes unused fields from cached objects.
package cachetransform

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// Of returns the transform of a cache that stores the result of reduce for objects of type T. Other objects, such as
// tombstones, are unchanged.
func Of[T, R any](reduce func(T) R) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			return reduce(typed), nil
		}
		return object, nil
	}
}

// Meta returns only the metadata that identifies an object and its version, and its deletion timestamp. Objects in the
// same namespace share the memory of its name.
func Meta(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: Intern(object.GetNamespace()), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), DeletionTimestamp: object.GetDeletionTimestamp(),
	}
}

// KeepKeys returns the entries of a map with the given keys; nil if there are none.
func KeepKeys(values map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, found := values[key]; found {
			kept = with(kept, key, value)
		}
	}
	return kept
}

// FilterKeys returns the entries of a map for whose keys keep returns true; nil if there are none.
func FilterKeys(values map[string]string, keep func(key string) bool) map[string]string {
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

// Intern returns an equal string that shares its memory with all other equal interned strings.
func Intern(text string) string { return unique.Make(text).Value() }
