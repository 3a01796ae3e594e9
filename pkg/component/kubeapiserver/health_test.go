package kubeapiserver_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
)

// TestReadyBeforeAvailable checks that a step that waits for the API server continues as soon as one Pod is ready. The
// Deployment counts as available only after the Pod has been ready for minReadySeconds. A step that waits for the rollout waits
// until all Pods are ready and of the new revision.
func TestReadyBeforeAvailable(t *testing.T) {
	checks, err := expression.Compile([]resourcesv1alpha1.HealthCheck{kubeapiserver.Health()})
	if err != nil {
		t.Fatal(err)
	}
	check := checks.For(schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"})
	const unavailable = "availableReplicas: 0, conditions: [{type: Available, status: 'False'}, {type: Progressing, status: 'True', reason: ReplicaSetUpdated}]"
	for name, test := range map[string]struct {
		status               string
		healthy, progressing bool
		message              string
	}{
		"no Pod is ready":              {"observedGeneration: 2, replicas: 2, updatedReplicas: 2, " + unavailable, false, true, "Pods: 2 wanted, 2 exist, 0 ready, 2 up to date"},
		"one is ready, none available": {"observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 1, " + unavailable, true, true, "Pods: 2 wanted, 2 exist, 1 ready, 2 up to date"},
		"all are ready":                {"observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, " + unavailable, true, false, ""},
		"one of before is left":        {"observedGeneration: 2, replicas: 3, updatedReplicas: 2, readyReplicas: 3, " + unavailable, true, true, "Pods: 2 wanted, 3 exist, 3 ready, 2 up to date"},
		"of another generation":        {"observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, " + unavailable, false, true, "Pods: 2 wanted, 2 exist, 2 ready, 2 up to date"},
	} {
		text, err := yaml.YAMLToJSON([]byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kube-apiserver, generation: 2}\nspec: {replicas: 2, minReadySeconds: 30}\nstatus: {" + test.status + "}\n"))
		object := &unstructured.Unstructured{}
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := check.Evaluate(t.Context(), object.Object); (got.Unhealthy == "") != test.healthy || (got.Progressing != "") != test.progressing || got.Err != "" {
			t.Errorf("%s: %+v", name, got)
		} else if got.Progressing != "" && got.Progressing != test.message {
			t.Errorf("%s: the message is %q, want %q", name, got.Progressing, test.message)
		}
	}
}
