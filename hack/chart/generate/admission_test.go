package generate

import (
	"path/filepath"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/config"
)

// TestAdmissionControllerChart compares the output of the chart of the admission controller in each mode with testdata.
func TestAdmissionControllerChart(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "admission-controller"))
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]any{"resourceAdmissionConfiguration": map[string]any{"limits": []any{
		map[string]any{"apiGroups": []any{"core.gardener.cloud"}, "apiVersions": []any{"*"}, "resources": []any{"shoots"}, "size": "100k"},
		map[string]any{"apiGroups": []any{"core.gardener.cloud"}, "apiVersions": []any{"*"}, "resources": []any{"projects"}, "count": 10},
	}}}
	for mode, values := range map[string]map[string]any{
		"all": {},
		"runtime": {
			"kubeconfigSecretName": "garden-kubeconfig", "image": map[string]any{"repository": "registry.example.org/admission-controller", "digest": "sha256:0"},
			"config": map[string]any{"logLevel": "debug", "server": limits},
		},
		"garden": {
			"user": "admission-controller", "config": map[string]any{"server": limits},
			"webhooks": map[string]any{"url": "https://gardener-admission-controller.garden:443", "caBundle": "bundle"},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			values["mode"] = mode
			checkGolden(t, loaded, "admission-controller-"+mode, values)
			checkConfiguration(t, loaded, values, func(text []byte) (string, error) {
				c, err := config.Parse(text)
				if err != nil {
					return "", err
				}
				return c.GardenClientConnection.Kubeconfig, nil
			})
		})
	}
}
