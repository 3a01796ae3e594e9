// Package redact hides the values of Secrets.
package redact

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// hidden replaces a value. If a value differs, before and after replace the two versions.
const (
	hidden = "***"
	before = "*** (before)"
	after  = "*** (after)"
)

// lastApplied is the annotation in which kubectl apply stores the whole object.
const lastApplied = corev1.LastAppliedConfigAnnotation

// IsSecret reports whether an object is a Secret.
func IsSecret(obj map[string]any) bool {
	return obj["kind"] == "Secret" && obj["apiVersion"] == "v1"
}

// One redacts the values of a Secret, in place. It does not change other objects.
func One(obj map[string]any) { Both(obj, nil) }

// Both redacts the values of a Secret before and after a change, in place. Changes remain visible. Either may be nil.
func Both(old, updated map[string]any) {
	if !IsSecret(old) && !IsSecret(updated) {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		redactMaps(mapOf(old, field), mapOf(updated, field))
	}
	redactKeys(mapOf(old, "metadata", "annotations"), mapOf(updated, "metadata", "annotations"), func(key string) bool {
		return key == lastApplied || strings.HasPrefix(key, "last-applied")
	})
}

func redactMaps(old, updated map[string]any) {
	redactKeys(old, updated, func(string) bool { return true })
}

func redactKeys(old, updated map[string]any, secret func(key string) bool) {
	for key, value := range old {
		if !secret(key) {
			continue
		}
		other, both := updated[key]
		switch {
		case !both:
			old[key] = hidden
		case reflect.DeepEqual(value, other):
			old[key], updated[key] = hidden, hidden
		default:
			old[key], updated[key] = before, after
		}
	}
	for key := range updated {
		if _, both := old[key]; !both && secret(key) {
			updated[key] = hidden
		}
	}
}

func mapOf(obj map[string]any, path ...string) map[string]any {
	for _, field := range path {
		obj, _ = obj[field].(map[string]any)
	}
	return obj
}
