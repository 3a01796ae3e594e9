// Package references is for clients of the garbage collector: programs that create immutable ConfigMaps and Secrets
// with unique names and rely on the garbage collector to delete unreferenced ones. MakeUnique makes such an object,
// InjectAnnotations records the ones that a workload uses. See docs/garbage-collector.md.
package references

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// LabelKeyGarbageCollectable and LabelValueGarbageCollectable mark the ConfigMaps and Secrets that the garbage
	// collector deletes when no object refers to them. Other values of the label have no effect.
	LabelKeyGarbageCollectable = resourcesv1alpha1.LabelGarbageCollectableReference
	// LabelValueGarbageCollectable is described at LabelKeyGarbageCollectable.
	LabelValueGarbageCollectable = "true"

	// AnnotationKeyPrefix is the prefix of the key of every annotation that records a reference.
	AnnotationKeyPrefix = "reference.resources.gardener.cloud/"
	// KindConfigMap follows the prefix in keys of references to ConfigMaps.
	KindConfigMap = "configmap"
	// KindSecret follows the prefix in keys of references to Secrets.
	KindSecret = "secret"
)

// hashLength is the number of hexadecimal digits in keys and in unique names.
const hashLength = 8

// Reference is a ConfigMap or Secret that is in use. Its namespace is that of the object that refers to it.
type Reference struct {
	// Kind is KindConfigMap or KindSecret.
	Kind string
	Name string
}

// AnnotationKey returns the key of the annotation that records a reference. The value of the annotation is the name.
// The kind is KindConfigMap or KindSecret. As in gardener-resource-manager, names are hashed, because the maximum
// length of a key is less than that of a name.
func AnnotationKey(kind, name string) string {
	hash := sha256.Sum256([]byte(name))
	return AnnotationKeyPrefix + kind + "-" + hex.EncodeToString(hash[:])[:hashLength]
}

// Parse returns the reference in an annotation, and whether there is one. As in gardener-resource-manager, the name
// counts and is not compared with the hash in the key. With a wrong hash, an unused object may be kept, but no object
// in use is deleted.
func Parse(key, value string) (Reference, bool) {
	rest, found := strings.CutPrefix(key, AnnotationKeyPrefix)
	if !found || value == "" {
		return Reference{}, false
	}
	kind, hash, found := strings.Cut(rest, "-")
	if !found || strings.Contains(hash, "-") || kind != KindConfigMap && kind != KindSecret {
		return Reference{}, false
	}
	return Reference{Kind: kind, Name: value}, true
}

// annotations returns the annotations that record references.
func annotations(used map[Reference]struct{}) map[string]string {
	result := make(map[string]string, len(used))
	for reference := range used {
		result[AnnotationKey(reference.Kind, reference.Name)] = reference.Name
	}
	return result
}

// parseAdditional parses "<kind>/<name>" and reports whether it is valid.
func parseAdditional(text string) (Reference, bool) {
	kind, name, _ := strings.Cut(text, "/")
	valid := (kind == KindConfigMap || kind == KindSecret) && len(validation.IsDNS1123Subdomain(name)) == 0
	return Reference{Kind: kind, Name: name}, valid
}
