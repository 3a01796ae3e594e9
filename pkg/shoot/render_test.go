package shoot

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestRenderedExample renders the example alone, and together with the objects that it refers to.
func TestRenderedExample(t *testing.T) {
	read := func(path ...string) *unstructured.Unstructured {
		text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "examples", "fleet"}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	renderer := Renderer()
	declaration := read("shoot-workerless.yaml")
	if !renderer.IsDeclaration(declaration) || renderer.IsDeclaration(read("core", "seed.yaml")) {
		t.Error("the renderer does not recognize the objects that declare Shoots")
	}
	credentials := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "garden", "name": "internal-domain"},
	}}
	for name, others := range map[string][]*unstructured.Unstructured{
		"alone": nil, "with others": {read("core", "seed.yaml"), read("core", "cloudprofile.yaml"), read("core", "project.yaml"), credentials},
	} {
		bundles := 15
		if others != nil {
			bundles++ // the record in the internal domain of the Seed
		}
		owner, plan, err := renderer.Plan(flow.RenderInputs{Declaration: declaration.DeepCopy(), Others: others, Version: "v1", Now: now})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all, held, err := flow.RenderPlan(owner, plan, flow.Rules{Scheme: renderer.Scheme, Version: "v1"})
		if err != nil || len(held) > 0 || len(plan.Waits) > 0 || len(all) != bundles {
			t.Errorf("%s: %d bundles, held %v, waits %v, %v", name, len(all), held, plan.Waits, err)
		}
		for _, each := range all {
			if namespace := each.ManagedResource.Namespace; namespace != "garden" && namespace != "shoot--dev--registry" {
				t.Errorf("%s: %s is in the namespace %s", name, each.Bundle.Name, namespace)
			}
		}
	}
}
