package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/gardenlet/config"
)

// gardenletValues returns values for the chart of the gardenlet, with the configuration of the examples.
func gardenletValues(t *testing.T) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "config", "gardenlet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configuration map[string]any
	if err := yaml.Unmarshal(content, &configuration); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"config": configuration}
}

// setKubeconfig adds a kubeconfig to a reference to a Secret.
func setKubeconfig(t *testing.T, values map[string]any, reference, kubeconfig string) {
	t.Helper()
	if err := unstructured.SetNestedField(values, kubeconfig, "config", "gardenClientConnection", reference, "kubeconfig"); err != nil {
		t.Fatal(err)
	}
}

// TestGardenletChart compares the output of the gardenlet's chart with testdata.
func TestGardenletChart(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "gardenlet"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("seed", func(t *testing.T) { checkGolden(t, loaded, "gardenlet-seed", gardenletValues(t)) })
	t.Run("more", func(t *testing.T) {
		values := gardenletValues(t)
		setKubeconfig(t, values, "bootstrapKubeconfig", "the kubeconfig\nof the bootstrap\n")
		values["imageVectorOverwrite"], values["componentImageVectorOverwrites"] = "images: []", "components: []"
		values["image"] = map[string]any{"repository": "registry.example.org/gardenlet", "digest": "sha256:0"}
		values["env"] = []any{map[string]any{"name": "GODEBUG", "value": "http2debug=1"}}
		checkGolden(t, loaded, "gardenlet-more", values)
	})
	t.Run("garden", func(t *testing.T) {
		seeds := []any{map[string]any{"name": "one"}, map[string]any{"name": "two", "bootstrapTokenID": "abcdef"}}
		checkGolden(t, loaded, "gardenlet-garden", map[string]any{"mode": "garden", "seeds": seeds})
	})
}

// TestGardenletChartConfiguration checks that the process accepts the configuration in the ConfigMap, and that the
// ConfigMap has no kubeconfig.
func TestGardenletChartConfiguration(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "gardenlet"))
	if err != nil {
		t.Fatal(err)
	}
	values := gardenletValues(t)
	setKubeconfig(t, values, "kubeconfigSecret", "secret")
	rollout := map[string]any{"budget": int64(7), "maxFailed": int64(2)} // not the defaults
	if err := unstructured.SetNestedMap(values, rollout, "config", "controllers", "shoot", "rollout"); err != nil {
		t.Fatal(err)
	}
	files, err := Render(loaded, "garden", values)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(files["config.yaml"], "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "ConfigMap" {
			continue
		}
		text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if c.SeedConfig.Metadata.Name != "my-seed" {
			t.Errorf("the Seed is %q", c.SeedConfig.Metadata.Name)
		}
		if got := c.Controllers.Shoot.Rollout; *got.Budget != 7 || *got.MaxFailed != 2 {
			t.Errorf("controllers.shoot.rollout has the budget %d and maxFailed %d", *got.Budget, *got.MaxFailed)
		}
		return
	}
	t.Errorf("no ConfigMap with the configuration in %v", files)
}
