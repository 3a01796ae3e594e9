package generate

import (
	"path/filepath"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/config"
)

// TestControllerManagerChart compares the output of the chart of the controller-manager in each mode with
// testdata.
func TestControllerManagerChart(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "controller-manager"))
	if err != nil {
		t.Fatal(err)
	}
	for mode, values := range map[string]map[string]any{
		"all": {},
		"runtime": {
			"kubeconfigSecretName": "garden-kubeconfig", "image": map[string]any{"repository": "registry.example.org/controller-manager", "digest": "sha256:0"},
			"config": map[string]any{"logLevel": "debug", "gardenClientConnection": map[string]any{"qps": 10}},
		},
		"garden": {"user": "controller-manager", "config": map[string]any{"leaderElection": map[string]any{"resourceName": "other"}}},
	} {
		t.Run(mode, func(t *testing.T) {
			values["mode"] = mode
			checkGolden(t, loaded, "controller-manager-"+mode, values)
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

// TestSwitchOfGardenletRights checks that the process gets the switch of the rights of gardenlets from the values of the chart, and that
// the rights are granted without it.
func TestSwitchOfGardenletRights(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "controller-manager"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		controllers map[string]any
		want        bool
	}{
		"nothing": {map[string]any{}, true},
		"on":      {map[string]any{"gardenletRights": map[string]any{"enabled": true}}, true},
		"off":     {map[string]any{"gardenletRights": map[string]any{"enabled": false}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			enabled := !test.want
			values := map[string]any{"mode": "all", "config": map[string]any{"controllers": test.controllers}}
			checkConfiguration(t, loaded, values, func(text []byte) (string, error) {
				c, err := config.Parse(text)
				if err == nil {
					enabled = *c.Controllers.GardenletRights.Enabled
				}
				return "", err
			})
			if enabled != test.want {
				t.Errorf("enabled: %t, want %t", enabled, test.want)
			}
		})
	}
}

// checkConfiguration checks that the process accepts the configuration in the ConfigMap, if the chart has one. parse returns its
// kubeconfig for the garden.
func checkConfiguration(t *testing.T, loaded *chart.Chart, values map[string]any, parse func([]byte) (kubeconfig string, err error)) {
	t.Helper()
	files, err := Render(loaded, "garden", values)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(files["deployment.yaml"], "\n---\n")
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(first), &object.Object); err != nil || len(object.Object) == 0 {
		return
	}
	text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if (kubeconfig != "") != (values["kubeconfigSecretName"] != nil) {
		t.Errorf("the kubeconfig is %q", kubeconfig)
	}
}
