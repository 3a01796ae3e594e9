package manifest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestBookkeeping: the annotations of controllers are not part of the objects that are sent, all others are.
func TestBookkeeping(t *testing.T) {
	for _, test := range []struct {
		gk   schema.GroupKind
		key  string
		sent bool
	}{
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, "deployment.kubernetes.io/revision", false},
		{schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, "deployment.kubernetes.io/desired-replicas", false},
		{schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, "autoscaling.alpha.kubernetes.io/conditions", false},
		{schema.GroupKind{Kind: "Endpoints"}, "endpoints.kubernetes.io/last-change-trigger-time", false},
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, "example.org/revision", true},
		{schema.GroupKind{Kind: "ConfigMap"}, "deployment.kubernetes.io/revision", true},
	} {
		annotations := map[string]any{test.key: "7", "a": "b"}
		dropBookkeeping(map[string]any{"annotations": annotations}, test.gk)
		if _, sent := annotations[test.key]; sent != test.sent || annotations["a"] != "b" {
			t.Errorf("%s: the annotations %s become %v", test.gk, test.key, annotations)
		}
		dropBookkeeping(map[string]any{}, test.gk)
	}
}
