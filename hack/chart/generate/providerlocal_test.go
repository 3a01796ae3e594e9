package generate

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestProviderLocalChart compares the output of the chart of provider-local with testdata.
func TestProviderLocalChart(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "provider-local"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("seed", func(t *testing.T) { checkGolden(t, loaded, "provider-local", map[string]any{}) })
	t.Run("more", func(t *testing.T) {
		checkGolden(t, loaded, "provider-local-more", map[string]any{
			"image":                map[string]any{"repository": "registry.example.org/provider-local", "digest": "sha256:0"},
			"disableControllers":   []any{"network"},
			"disableWebhooks":      []any{"controlplane"},
			"machines":             map[string]any{"simulated": true, "environment": map[string]any{"REGISTRY": "registry.example.org", "PAUSE_IMAGE": "a b"}},
			"backup":               map[string]any{"hostPath": "/etc/buckets"},
			"imageVectorOverwrite": "images: [{name: provider-local, ref: a}]\n",
			"podLabels":            map[string]any{"a": "b"},
			"podAnnotations":       map[string]any{"c": "d"},
			"imagePullSecrets":     []any{map[string]any{"name": "registry"}},
		})
	})
}

// TestAdmissionLocalCharts compares the output of the admission charts of provider-local with testdata.
func TestAdmissionLocalCharts(t *testing.T) {
	virtual := map[string]any{
		"runtime": map[string]any{
			"kubeconfigSecretName": "garden", "imagePullSecrets": []any{map[string]any{"name": "registry"}}, "podLabels": map[string]any{"a": "b"}, "podAnnotations": map[string]any{"c": "d"},
			"image": map[string]any{"repository": "registry.example.org/provider-local", "digest": "sha256:0"},
			"gardener": map[string]any{
				"runtimeCluster": map[string]any{"priorityClassName": "gardener-garden-system-400"},
				"virtualCluster": map[string]any{"enabled": true, "namespace": "extension-provider-local"},
			},
		},
		"application": map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{
			"enabled": true, "serviceAccount": map[string]any{"name": "extension-admission-provider-local", "namespace": "kube-system"},
		}}},
	}
	for _, part := range []string{"runtime", "application"} {
		loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "admission-local", part))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(part, func(t *testing.T) {
			checkGolden(t, loaded, "admission-local-"+part, map[string]any{})
			values, _ := virtual[part].(map[string]any)
			checkGolden(t, loaded, "admission-local-"+part+"-virtual", values)
			missing := map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{"enabled": true}}}
			if _, err := Render(loaded, "garden", missing); err == nil || !strings.Contains(err.Error(), "is required") {
				t.Errorf("a virtual garden cluster without further values: error %v", err)
			}
		})
	}
}
