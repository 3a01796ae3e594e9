package managedresource

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// inventory is what lives, or may live, in the target cluster because of one ManagedResource.
type inventory map[object.Key]resourcesv1alpha1.ObjectReference

// inventoryOf reads the inventory of a status. The namespace of cluster-scoped objects is dropped: it may have been
// recorded before their scope was known.
func inventoryOf(references []resourcesv1alpha1.ObjectReference, scopes map[schema.GroupVersionKind]scope) inventory {
	result := make(inventory, len(references))
	for _, reference := range references {
		ref := refOfEntry(reference)
		if scopes[ref.GroupVersionKind] == scopeCluster {
			reference.Namespace, ref.Namespace = "", ""
		}
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

// union returns the inventory with every manifest in it. It tells whether that added an object.
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

func entryOf(manifest object.Manifest, digest string) resourcesv1alpha1.ObjectReference {
	return resourcesv1alpha1.ObjectReference{
		APIVersion:  manifest.GroupVersion().String(),
		Kind:        manifest.Kind,
		Namespace:   manifest.Namespace,
		Name:        manifest.Name,
		Labels:      nilIfEmpty(manifest.Labels),
		Annotations: nilIfEmpty(manifest.Annotations),
		Digest:      digest,
	}
}

// digestOf joins what was sent for an object with what is owned of it. It is empty, so that it never agrees, if nothing
// is owned.
func digestOf(manifest object.Manifest, observation live.Observation) string {
	if observation.OwnedDigest == "" {
		return ""
	}
	return manifest.Digest + "." + observation.OwnedDigest
}

func nilIfEmpty(values map[string]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	return values
}
