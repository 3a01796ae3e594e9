package managedresource

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
)

// largeStatus returns a status with an inventory in which every object has the given labels and annotations.
func largeStatus(count int, labels, annotations map[string]string) resourcesv1alpha1.ManagedResourceStatus {
	var result resourcesv1alpha1.ManagedResourceStatus
	for i := range count {
		manifest := manifestOf(configMapKind, "a", fmt.Sprint("object-", i))
		manifest.Labels, manifest.Annotations = labels, annotations
		result.Resources = append(result.Resources, entryOf(manifest, ""))
	}
	return result
}

func TestInventoryThatIsTooLarge(t *testing.T) {
	long := strings.Repeat("x", 2000)
	large := largeStatus(1000, map[string]string{"a": long}, map[string]string{"a": long})
	got, err := fit(large, resourcesv1alpha1.ManagedResourceSpec{})
	if err != nil || len(got.Resources) != 1000 || got.Resources[0].Labels != nil || got.Resources[0].Annotations != nil ||
		large.Resources[0].Annotations == nil {
		t.Errorf("%v; the first entry is %v", err, got.Resources[0])
	}
	if _, err := fit(largeStatus(20_000, nil, nil), resourcesv1alpha1.ManagedResourceSpec{}); err == nil ||
		!strings.Contains(err.Error(), "inventory of 20000 objects takes") {
		t.Errorf("the error is %v", err)
	}
}

// TestCompactInventoryKeepsWhatDecisionsRead checks that a compact inventory keeps the delete wave, the annotations that keep
// an object, and whether the object is unchanged since it was applied.
func TestCompactInventoryKeepsWhatDecisionsRead(t *testing.T) {
	for key, value := range map[string]string{
		"argocd.argoproj.io/sync-wave": "5", "argocd.argoproj.io/sync-options": "Prune=false,Delete=false,Replace=true",
		"resources.gardener.cloud/ignore": "true", "resources.gardener.cloud/keep-object": "true",
		"resources.gardener.cloud/delete-on-invalid-update": "true", "resources.gardener.cloud/mode": "Ignore",
		"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent", "kustomize.toolkit.fluxcd.io/prune": "disabled",
		"kustomize.toolkit.fluxcd.io/force": "enabled", "kustomize.toolkit.fluxcd.io/reconcile": "disabled",
	} {
		annotations := map[string]string{"a": strings.Repeat("x", 2000), key: value}
		got, err := fit(largeStatus(1000, nil, annotations), resourcesv1alpha1.ManagedResourceSpec{})
		kept := got.Resources[0].Annotations
		if want := applyoptions.Of(annotations); err != nil || applyoptions.Of(kept) != want || len(kept) != 1 {
			t.Errorf("%s: %v remains, %v", key, kept, err)
		}
	}
}

// TestCompactInventoryIsSettled checks that an object does not count as changed because the inventory lacks some metadata of
// the manifest.
func TestCompactInventoryIsSettled(t *testing.T) {
	const reference = "reference.resources.gardener.cloud/configmap-1"
	labels := map[string]string{"team": "shop"}
	annotations := map[string]string{"a": "b", reference: "settings"}
	for name, test := range map[string]struct {
		spec    resourcesv1alpha1.ManagedResourceSpec
		settled bool
	}{
		"nothing is forced":               {resourcesv1alpha1.ManagedResourceSpec{}, true},
		"labels are forced":               {resourcesv1alpha1.ManagedResourceSpec{ForceOverwriteLabels: ptr.To(true)}, true},
		"annotations are forced, no room": {resourcesv1alpha1.ManagedResourceSpec{ForceOverwriteAnnotations: ptr.To(true)}, false},
	} {
		entryAnnotations := maps.Clone(annotations)
		entryAnnotations["long"] = strings.Repeat("x", 2000)
		compact, err := fit(largeStatus(1000, labels, entryAnnotations), test.spec)
		if err != nil {
			t.Fatal(err)
		}
		manifest := recordedManifest(compact.Resources[0])
		in := applyInput{
			forceLabels:      ptr.Deref(test.spec.ForceOverwriteLabels, false),
			forceAnnotations: ptr.Deref(test.spec.ForceOverwriteAnnotations, false),
		}
		meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: entryAnnotations}}
		strip := in.foreignKeys(&manifest, live.Observe(meta, fieldowner.DefaultPolicy()))
		if settled := len(strip.Labels)+len(strip.Annotations) == 0; settled != test.settled {
			t.Errorf("%s: %v counts as added by others", name, strip)
		}
	}
}
