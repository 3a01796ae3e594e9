package generate

import (
	"path/filepath"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/scheduler/config"
)

// TestSchedulerChart compares the output of the chart of the scheduler in each mode with
// testdata.
func TestSchedulerChart(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	for mode, values := range map[string]map[string]any{
		"all": {},
		"runtime": {
			"kubeconfigSecretName": "garden-kubeconfig", "image": map[string]any{"repository": "registry.example.org/scheduler", "digest": "sha256:0"},
			"config": map[string]any{"logLevel": "debug", "clientConnection": map[string]any{"qps": 10}},
		},
		"garden": {"user": "scheduler", "config": map[string]any{"leaderElection": map[string]any{"resourceName": "other"}}},
	} {
		t.Run(mode, func(t *testing.T) {
			values["mode"] = mode
			checkGolden(t, loaded, "scheduler-"+mode, values)
			checkSchedulerConfiguration(t, loaded, values)
		})
	}
}

// checkSchedulerConfiguration checks that the process accepts the configuration in the ConfigMap, if the chart has one.
func checkSchedulerConfiguration(t *testing.T, loaded *chart.Chart, values map[string]any) {
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
	c, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if (c.ClientConnection.Kubeconfig != "") != (values["kubeconfigSecretName"] != nil) {
		t.Errorf("the kubeconfig is %q", c.ClientConnection.Kubeconfig)
	}
}
