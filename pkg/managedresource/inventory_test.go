package managedresource

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func entryNames(references []resourcesv1alpha1.ObjectReference) []string {
	result := make([]string, 0, len(references))
	for _, reference := range references {
		result = append(result, refOfEntry(reference).String())
	}
	return result
}

func TestInventoryIsSortedAsGardenerResourceManagerDoes(t *testing.T) {
	clusterRole := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	foreign := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Namespace"} // only the kind is looked at
	// By the text "<group>/<kind>/<namespace>/<name>", where no namespace counts as "default" but for Namespaces.
	sorted := []resourcesv1alpha1.ObjectReference{
		entry(configMapKind, "a-b", "x", ""), // '-' comes before '/'
		entry(configMapKind, "a", "x", ""),
		entry(configMapKind, "a", "y", ""),
		entry(configMapKind, "b", "a", ""),
		entry(namespaceKind, "", "a", ""),
		entry(namespaceKind, "", "z", ""),
		entry(deploymentKind, "a", "x", ""),
		entry(foreign, "", "z", ""),
		entry(foreign, "b", "a", ""),
		entry(widgetKind, "a", "x", ""),
		entry(clusterRole, "c", "x", ""),
		entry(clusterRole, "", "w", ""),
		entry(clusterRole, "", "x", ""),
		entry(clusterRole, "default", "x", ""),
		entry(clusterRole, "e", "x", ""),
	}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)

	got, want := entryNames(inventoryWith(shuffled...).references()), entryNames(sorted)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestInventoryOfDropsNamespacesOfClusterScopedObjects(t *testing.T) {
	references := []resourcesv1alpha1.ObjectReference{
		entry(widgetKind, "default", "x", "d"),
		entry(configMapKind, "default", "x", "d"),
		entry(deploymentKind, "default", "x", "d"),
	}
	got := inventoryOf(references, map[schema.GroupVersionKind]scope{
		widgetKind: scopeCluster, configMapKind: scopeNamespaced,
	})
	want := []string{"v1/ConfigMap/default/x", "apps/v1/Deployment/default/x", "example.com/v1/Widget/x"}
	if names := entryNames(got.references()); !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	key := object.Key{Group: "example.com", Kind: "Widget", Name: "x"}
	if got[key].Digest != "d" {
		t.Errorf("the digest got lost: %+v", got[key])
	}
	if references[0].Namespace != "default" {
		t.Error("the caller's status was changed")
	}
}

func TestUnionAddsButNeverChanges(t *testing.T) {
	recorded := inventoryWith(entry(configMapKind, "a", "old", "digest"), entry(configMapKind, "a", "gone", "digest"))
	known := manifestOf(configMapKind.GroupKind().WithVersion("v2"), "a", "old")
	added := manifestOf(configMapKind, "a", "new")
	added.Labels = map[string]string{"x": "y"}

	union, grown := recorded.union([]object.Manifest{known, added})
	want := []string{"v1/ConfigMap/a/gone", "v1/ConfigMap/a/new", "v1/ConfigMap/a/old"}
	if got := entryNames(union.references()); !grown || !slices.Equal(got, want) {
		t.Errorf("got %v, grown %v; want %v", got, grown, want)
	}
	if got := union[known.Key()]; got.Digest != "digest" || got.APIVersion != "v1" {
		t.Errorf("the entry of a known object was changed to %+v", got)
	}
	if got := union[added.Key()]; got.Digest != "" || !maps.Equal(got.Labels, added.Labels) {
		t.Errorf("the entry of the new object is %+v, want its labels and no digest", got)
	}
	if len(recorded) != 2 {
		t.Errorf("the inventory itself was changed to %v", recorded)
	}
	if _, grown := recorded.union([]object.Manifest{known}); grown {
		t.Error("the union with a known object grew")
	}
	if union, grown := (inventory{}).union(nil); grown || len(union) != 0 {
		t.Error("the union of nothing with nothing grew")
	}
}

func TestEntryOfRecordsWhatOthersCompareWith(t *testing.T) {
	manifest := manifestOf(deploymentKind, "a", "x")
	manifest.Labels, manifest.Annotations = map[string]string{"l": "1"}, map[string]string{}
	got := entryOf(manifest, "digest")
	if got.APIVersion != "apps/v1" || got.Kind != "Deployment" || got.Namespace != "a" || got.Name != "x" ||
		got.Digest != "digest" || !maps.Equal(got.Labels, manifest.Labels) {
		t.Errorf("got %+v", got)
	}
	if got.Annotations != nil {
		t.Error("no annotations must be stored as nil, as they are read back")
	}
	if refOfEntry(got) != manifest.Ref {
		t.Errorf("the entry names %v, want %v", refOfEntry(got), manifest.Ref)
	}
}

func TestDigestOf(t *testing.T) {
	manifest := object.Manifest{Digest: "sent"}
	if got := digestOf(manifest, live.Observation{OwnedDigest: "owned"}); got != "sent.owned" {
		t.Errorf("got %q, want sent.owned", got)
	}
	if got := digestOf(manifest, live.Observation{}); got != "" {
		t.Errorf("got %q for an object of which nothing is owned, want none", got)
	}
}
