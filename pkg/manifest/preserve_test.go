package manifest

import (
	"fmt"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestReplicasBesideAutoscalers checks which replicas are sent, and which are sent only to an object that has 0 replicas.
func TestReplicasBesideAutoscalers(t *testing.T) {
	const preserve = "resources.gardener.cloud/preserve-replicas: \"true\""
	for name, test := range map[string]struct {
		replicas, annotations string
		scaling               Scaling
		ignored               string
		sent, fromZero        any
	}{
		"no autoscaler":            {replicas: "3", sent: float64(3)},
		"no autoscaler, 0":         {replicas: "0", sent: float64(0)},
		"autoscaler":               {replicas: "3", scaling: ScaledFromOne, fromZero: int64(3)},
		"autoscaler, 0":            {replicas: "0", scaling: ScaledFromOne, sent: float64(0)},
		"autoscaler, 0.0":          {replicas: "0.0", scaling: ScaledFromOne, sent: float64(0)},
		"autoscaler, none":         {scaling: ScaledFromOne},
		"autoscaler, preserved":    {replicas: "3", annotations: preserve, scaling: ScaledFromOne},
		"autoscaler, preserved, 0": {replicas: "0", annotations: preserve, scaling: ScaledFromOne},
		"autoscaler, ignored":      {replicas: "3", scaling: ScaledFromOne, ignored: "/spec/replicas"},
		"autoscaler, spec ignored": {replicas: "3", scaling: ScaledFromOne, ignored: "/spec"},
		"other field ignored":      {replicas: "3", scaling: ScaledFromOne, ignored: "/spec/paused", fromZero: int64(3)},
		"from 0":                   {replicas: "3", scaling: ScaledFromZero},
		"from 0, 0":                {replicas: "0", scaling: ScaledFromZero},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, annotations: {" + test.annotations + "}}\nspec:\n  paused: false\n"
			if test.replicas != "" {
				text += "  replicas: " + test.replicas + "\n"
			}
			options := testMarks(nil)
			options.Scaled = func(object.Key) Scaling { return test.scaling }
			if test.ignored != "" {
				rules, err := ParseIgnoreRules(&resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{{Paths: []string{test.ignored}}}})
				if err != nil {
					t.Fatal(err)
				}
				options.Ignored = rules
			}
			manifest := renderOne(t, text, options)
			if got := manifest.ReplicasFromZero; got != test.fromZero {
				t.Errorf("an object with 0 replicas gets %v, want %v", got, test.fromZero)
			}
			manifest.Initial = nil // sent only when the object is created
			if got := fieldOf(t, manifest, "spec", "replicas"); fmt.Sprint(got) != fmt.Sprint(test.sent) {
				t.Errorf("the object gets %v, want %v: %s", got, test.sent, strings.TrimSpace(string(manifest.Body)))
			}
		})
	}
}
