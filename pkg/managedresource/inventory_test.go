package managedresource

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/test/random"
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
	foreign := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Namespace"} // only the kind counts
	// Sorted by the text "<group>/<kind>/<namespace>/<name>". An empty namespace counts as "default", except for Namespaces.
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
	got := inventoryOf(references, map[schema.GroupVersionKind]manifest.Scope{
		widgetKind: manifest.ScopeCluster, configMapKind: manifest.ScopeNamespaced,
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
		t.Error("the union with a known object is larger")
	}
	if union, grown := (inventory{}).union(nil); grown || len(union) != 0 {
		t.Error("the union of two empty inventories is not empty")
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
		t.Error("empty annotations must be stored as nil, because they are read back as nil")
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
		t.Errorf("got %q for an object without owned fields, want none", got)
	}
}

// FuzzInventory checks that an inventory does not change when it is stored and read, in any order, and that nothing is dropped
// to make it fit.
func FuzzInventory(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5}, "a", "b/c", uint16(3))
	f.Add([]byte{9, 9, 9}, "", "\x00\xff", uint16(2000))
	f.Fuzz(func(t *testing.T, data []byte, first, second string, count uint16) {
		r := random.From(data)
		inv := inventory{}
		for i := range count % 400 {
			manifest := manifestOf(oneOf(r, configMapKind, secretKind, widgetKind, deploymentKind), oneOf(r, "", "a", first), fmt.Sprint(oneOf(r, "x", second), i))
			manifest.Labels = oneOf(r, nil, map[string]string{}, map[string]string{first: second})
			manifest.Annotations = oneOf(r, nil, map[string]string{second: first},
				map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "canary", first: "x"})
			inv[manifest.Key()] = entryOf(manifest, oneOf(r, "", "sent.owned"))
		}
		references := inv.references()
		if again := inventoryOf(references, nil); !reflect.DeepEqual(again, inv) {
			t.Fatalf("%d objects were stored, and %d or other ones were read", len(inv), len(again))
		}
		status, err := fit(resourcesv1alpha1.ManagedResourceStatus{Resources: references}, resourcesv1alpha1.ManagedResourceSpec{})
		if err != nil {
			return
		}
		if sizeOf(status) > maxStatusBytes || len(status.Resources) != len(inv) {
			t.Fatalf("%d of %d objects in %d bytes", len(status.Resources), len(inv), sizeOf(status))
		}
		for _, reference := range status.Resources {
			if want := inv[refOfEntry(reference).Key()]; reference.Digest != want.Digest || reference.Name != want.Name {
				t.Fatalf("%+v became %+v", want, reference)
			}
			if strings.Contains(reference.Annotations["kubectl.kubernetes.io/last-applied-configuration"], "canary") && first != "kubectl.kubernetes.io/last-applied-configuration" {
				t.Fatalf("%+v repeats the whole object", reference)
			}
		}
	})
}
