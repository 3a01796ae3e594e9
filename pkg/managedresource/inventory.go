package managedresource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// inventory contains the objects that exist, or may exist, in the target cluster because of one ManagedResource.
type inventory map[object.Key]resourcesv1alpha1.ObjectReference

// inventoryOf reads the inventory of a status. It drops the namespace of cluster-scoped objects, which may have been
// recorded before their scope was known.
func inventoryOf(references []resourcesv1alpha1.ObjectReference, scopes map[schema.GroupVersionKind]manifest.Scope) inventory {
	result := make(inventory, len(references))
	for _, reference := range references {
		ref := refOfEntry(reference)
		if scopes[ref.GroupVersionKind] == manifest.ScopeCluster {
			reference.Namespace, ref.Namespace = "", ""
		}
		reference.Annotations = redactedAnnotations(reference.Annotations) // earlier versions recorded them without redaction
		result[ref.Key()] = reference
	}
	return result
}

func refOfEntry(reference resourcesv1alpha1.ObjectReference) object.Ref {
	return object.Ref{
		GroupVersionKind: schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind),
		Namespace:        reference.Namespace,
		Name:             reference.Name,
	}
}

// references returns the inventory in its stored form: sorted by group, kind, namespace and name as in
// gardener-resource-manager, so that equal inventories have the same representation.
func (i inventory) references() []resourcesv1alpha1.ObjectReference {
	keys := slices.SortedFunc(maps.Keys(i), func(a, b object.Key) int {
		return cmp.Or(cmp.Compare(sortKey(a), sortKey(b)), a.Compare(b))
	})
	references := make([]resourcesv1alpha1.ObjectReference, 0, len(keys))
	for _, key := range keys {
		references = append(references, i[key])
	}
	return references
}

func sortKey(key object.Key) string {
	namespace := key.Namespace
	if namespace == "" && key.Kind != "Namespace" {
		namespace = corev1.NamespaceDefault
	}
	return key.Group + "/" + key.Kind + "/" + namespace + "/" + key.Name
}

// union returns the inventory with an entry for every manifest. It reports whether that added an object.
func (i inventory) union(manifests []object.Manifest) (union inventory, grown bool) {
	union = maps.Clone(i)
	for _, manifest := range manifests {
		if _, recorded := union[manifest.Key()]; !recorded {
			union[manifest.Key()] = entryOf(manifest, "")
			grown = true
		}
	}
	return union, grown
}

// has reports whether the inventory contains an object.
func (i inventory) has(key object.Key) bool {
	_, recorded := i[key]
	return recorded
}

// without returns the entries that are not in another inventory.
func (i inventory) without(other inventory) inventory {
	rest := inventory{}
	for key, entry := range i {
		if _, known := other[key]; !known {
			rest[key] = entry
		}
	}
	return rest
}

// maxStatusBytes is the maximum size of a status in bytes of JSON: the default limit of etcd is 1.5 MiB for a request,
// and a ManagedResource also has other fields.
const maxStatusBytes = 1_450_000

// fit makes a status small enough to be stored. If an inventory is too large, fit first removes the labels and
// annotations that are only informational, and then those that avoid reading the manifests. Annotations that determine
// how the object is deleted always stay. If the status is still too large, fit returns an error with its size.
func fit(status resourcesv1alpha1.ManagedResourceStatus, spec resourcesv1alpha1.ManagedResourceSpec,
) (resourcesv1alpha1.ManagedResourceStatus, error) {
	if sizeOf(status) <= maxStatusBytes {
		return status, nil
	}
	full, size := status.Resources, 0
	for _, reduce := range []func(*resourcesv1alpha1.ObjectReference){
		func(entry *resourcesv1alpha1.ObjectReference) { keepCompared(entry, spec) },
		func(entry *resourcesv1alpha1.ObjectReference) {
			entry.Labels, entry.Annotations = nil, cachetransform.FilterKeys(entry.Annotations, applyoptions.Reads)
		},
	} {
		status.Resources = slices.Clone(full)
		for i := range status.Resources {
			reduce(&status.Resources[i])
		}
		if size = sizeOf(status); size <= maxStatusBytes {
			return status, nil
		}
	}
	return status, fmt.Errorf("the inventory of %d objects takes %d bytes, and a ManagedResource can hold %d: "+
		"divide the objects among several ManagedResources", len(full), size, maxStatusBytes)
}

// keepCompared removes labels and annotations from an entry unless they control how its object is handled or are
// compared with those of the live object (foreignKeys).
func keepCompared(entry *resourcesv1alpha1.ObjectReference, spec resourcesv1alpha1.ManagedResourceSpec) {
	if !ptr.Deref(spec.ForceOverwriteLabels, false) {
		entry.Labels = nil
	}
	if !ptr.Deref(spec.ForceOverwriteAnnotations, false) {
		entry.Annotations = cachetransform.FilterKeys(entry.Annotations, func(key string) bool {
			return applyoptions.Reads(key) || strings.HasPrefix(key, referencePrefix)
		})
	}
}

// sizeOf returns the size of a status in bytes of JSON once all its objects are applied.
func sizeOf(status resourcesv1alpha1.ManagedResourceStatus) int {
	const digest = len(`"digest":"12345678901.12345678901",`)
	body, err := json.Marshal(status)
	if err != nil {
		return maxStatusBytes + 1
	}
	size := len(body)
	for _, reference := range status.Resources {
		if reference.Digest == "" {
			size += digest
		}
	}
	return size
}

func entryOf(manifest object.Manifest, digest string) resourcesv1alpha1.ObjectReference {
	return resourcesv1alpha1.ObjectReference{
		APIVersion:  manifest.GroupVersion().String(),
		Kind:        manifest.Kind,
		Namespace:   manifest.Namespace,
		Name:        manifest.Name,
		Labels:      nilIfEmpty(manifest.Labels),
		Annotations: nilIfEmpty(redactedAnnotations(manifest.Annotations)),
		Digest:      digest,
	}
}

// redactedAnnotations returns annotations without the one in which kubectl repeats the whole object, since a user who
// may read a ManagedResource is not necessarily allowed to read Secrets.
func redactedAnnotations(annotations map[string]string) map[string]string {
	if annotations[corev1.LastAppliedConfigAnnotation] == "" {
		return annotations
	}
	annotations = maps.Clone(annotations)
	annotations[corev1.LastAppliedConfigAnnotation] = ""
	return annotations
}

// digestOf joins the digest of the manifest of an object with the digest of its owned fields, or with its generation if
// it was sent by an update. It is empty, and therefore never matches, if neither exists.
func digestOf(manifest object.Manifest, observation live.Observation) string {
	applied := observation.AppliedDigest()
	if applied == "" {
		return ""
	}
	return manifest.Digest + digestSeparator + applied
}

// digestSeparator separates the two digests of an object. Neither contains it.
const digestSeparator = "."

// sentDigest returns the digest of the manifest that was last applied for a recorded object. It is empty if none was
// applied.
func sentDigest(entry resourcesv1alpha1.ObjectReference) string {
	sent, _, _ := strings.Cut(entry.Digest, digestSeparator)
	return sent
}

func nilIfEmpty(values map[string]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	return values
}

// kindsOf returns the distinct kinds of objects.
func kindsOf(refs []object.Ref) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	seen := map[schema.GroupKind]bool{}
	for _, ref := range refs {
		if !seen[ref.GroupKind()] {
			seen[ref.GroupKind()] = true
			kinds = append(kinds, ref.GroupVersionKind)
		}
	}
	return kinds
}
