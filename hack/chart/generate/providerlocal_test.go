package generate

import (
	"path/filepath"
	"testing"
)

// TestProviderLocalChart holds what the chart of provider-local makes against testdata.
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
