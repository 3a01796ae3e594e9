// Package references is for clients of the garbage collector: those who create immutable ConfigMaps and Secrets with unique
// names and leave it to the garbage collector to delete them when nothing refers to them any more. MakeUnique makes such an
// object, InjectAnnotations records which ones a workload uses. See docs/garbage-collector.md.
package references

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// LabelKeyGarbageCollectable and LabelValueGarbageCollectable mark the ConfigMaps and Secrets that the garbage collector
	// deletes when nothing refers to them. No other value of the label has this effect.
	LabelKeyGarbageCollectable = resourcesv1alpha1.LabelGarbageCollectableReference
	// LabelValueGarbageCollectable see LabelKeyGarbageCollectable.
	LabelValueGarbageCollectable = "true"

	// AnnotationKeyPrefix begins the key of every annotation that records a reference.
	AnnotationKeyPrefix = "reference.resources.gardener.cloud/"
	// KindConfigMap is how the key of a reference to a ConfigMap goes on.
	KindConfigMap = "configmap"
	// KindSecret is how the key of a reference to a Secret goes on.
	KindSecret = "secret"
)

// hashLength is the number of hexadecimal digits in keys and in unique names.
const hashLength = 8

// Reference is a ConfigMap or a Secret that is in use. It is in the namespace of the object that refers to it.
type Reference struct {
	// Kind is KindConfigMap or KindSecret.
	Kind string
	Name string
}

// AnnotationKey returns the key of the annotation that records a reference; its value is the name. The kind is KindConfigMap or
// KindSecret. As in gardener-resource-manager, names are hashed, because a key may be shorter than a name.
func AnnotationKey(kind, name string) string {
	hash := sha256.Sum256([]byte(name))
	return AnnotationKeyPrefix + kind + "-" + hex.EncodeToString(hash[:])[:hashLength]
}

// Parse returns what an annotation refers to, and whether it refers to anything. As in gardener-resource-manager, the name counts
// and the hash in the key is not compared with it: a wrong hash rather keeps an object than deletes one that is in use.
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

// parseAdditional reads "<kind>/<name>".
func parseAdditional(text string) (Reference, bool) {
	kind, name, _ := strings.Cut(text, "/")
	valid := (kind == KindConfigMap || kind == KindSecret) && len(validation.IsDNS1123Subdomain(name)) == 0
	return Reference{Kind: kind, Name: name}, valid
}
