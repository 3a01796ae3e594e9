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

// inventory is what lives, or may live, in the target cluster because of one ManagedResource.
type inventory map[object.Key]resourcesv1alpha1.ObjectReference

// inventoryOf reads the inventory of a status. The namespace of cluster-scoped objects is dropped: it may have been
// recorded before their scope was known.
func inventoryOf(references []resourcesv1alpha1.ObjectReference, scopes map[schema.GroupVersionKind]manifest.Scope) inventory {
	result := make(inventory, len(references))
	for _, reference := range references {
		ref := refOfEntry(reference)
		if scopes[ref.GroupVersionKind] == manifest.ScopeCluster {
			reference.Namespace, ref.Namespace = "", ""
		}
		reference.Annotations = redactedAnnotations(reference.Annotations) // former versions recorded them as they were
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

// references returns the inventory as it is stored: sorted by group, kind, namespace and name, as
// gardener-resource-manager does, so that equal inventories are stored alike.
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

// union returns the inventory with every manifest in it. It reports whether that added an object.
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

// has reports whether the inventory has an object.
func (i inventory) has(key object.Key) bool {
	_, recorded := i[key]
	return recorded
}

// without returns the entries that another inventory does not have.
func (i inventory) without(other inventory) inventory {
	rest := inventory{}
	for key, entry := range i {
		if _, known := other[key]; !known {
			rest[key] = entry
		}
	}
	return rest
}

// greatestStatus is how many bytes of JSON a status may have: etcd takes requests of 1.5 MiB by default, and the
// ManagedResource has other fields too.
const greatestStatus = 1_450_000

// fit makes a status small enough to be stored. An inventory that is too large goes without the labels and annotations that are for
// information only and, if that is not enough, without those that spare reading the manifests. Those that decide about the end of an
// object always stay. The error says by how much the rest is too large.
func fit(status resourcesv1alpha1.ManagedResourceStatus, spec resourcesv1alpha1.ManagedResourceSpec) (resourcesv1alpha1.ManagedResourceStatus, error) {
	if sizeOf(status) <= greatestStatus {
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
		if size = sizeOf(status); size <= greatestStatus {
			return status, nil
		}
	}
	return status, fmt.Errorf("the inventory of %d objects takes %d bytes, and a ManagedResource can hold %d: "+
		"divide the objects among several ManagedResources", len(full), size, greatestStatus)
}

// keepCompared takes from an entry the labels and annotations that neither decide about its object nor are compared with those of the
// live object (foreignKeys).
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

// sizeOf returns how many bytes a status takes once all its objects are applied.
func sizeOf(status resourcesv1alpha1.ManagedResourceStatus) int {
	const digest = len(`"digest":"12345678901.12345678901",`)
	body, err := json.Marshal(status)
	if err != nil {
		return greatestStatus + 1
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

// redactedAnnotations returns annotations as they are recorded: who may read a ManagedResource need not be allowed to read Secrets, which kubectl
// repeats as a whole.
func redactedAnnotations(annotations map[string]string) map[string]string {
	if annotations[corev1.LastAppliedConfigAnnotation] == "" {
		return annotations
	}
	annotations = maps.Clone(annotations)
	annotations[corev1.LastAppliedConfigAnnotation] = ""
	return annotations
}

// digestOf joins what was sent for an object with what is owned of it. It is empty, so that it never agrees, if nothing
// is owned.
func digestOf(manifest object.Manifest, observation live.Observation) string {
	if observation.OwnedDigest == "" {
		return ""
	}
	return manifest.Digest + digestSeparator + observation.OwnedDigest
}

// digestSeparator stands between the two digests of an object, and in neither.
const digestSeparator = "."

// sentDigest returns the digest of the manifest that was applied last for a recorded object, empty if none was.
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

// kindsOf returns the kinds of objects, each once.
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
