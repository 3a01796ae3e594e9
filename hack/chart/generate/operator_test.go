package generate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/trellis-k8s/trellis/pkg/operator/config"
)

// TestOperatorChart compares the output of the chart of the operator with testdata. The definitions of kinds are not in it, because they are
// copies of generated files.
func TestOperatorChart(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "operator"))
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := Render(loaded, "garden", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(definitions["crd.yaml"], "helm.sh/resource-policy: keep"); found != 3 {
		t.Errorf("the chart keeps %d definitions, want those of Gardens, Extensions and ManagedResources", found)
	}
	loaded.Templates = slices.DeleteFunc(loaded.Templates, func(file *common.File) bool { return file.Name == "templates/crd.yaml" })
	for name, values := range map[string]map[string]any{
		"operator": {},
		"operator-more": {
			"image":                map[string]any{"repository": "registry.example.org/operator", "digest": "sha256:0"},
			"imageVectorOverwrite": "images: []", "componentImageVectorOverwrites": "components: []",
			"config": map[string]any{
				"logLevel": "debug", "leaderElection": map[string]any{"resourceName": "other"},
				"controllers": map[string]any{"garden": map[string]any{"syncPeriod": "2h"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkGolden(t, loaded, name, values)
			checkConfiguration(t, loaded, values, func(text []byte) (string, error) {
				_, err := config.Parse(text)
				return "", err
			})
		})
	}
}
