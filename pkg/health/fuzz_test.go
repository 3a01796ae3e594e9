package health

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":1,"conditions":[]}}`,
		`{"metadata":7,"spec":[],"status":"x"}`, `{"metadata":null,"spec":null,"status":null}`,
		`{"status":{"conditions":[{"type":"Ready","status":"False"},{"status":1},null,[]]}}`,
		`{"status":{"conditions":[{"type":"Available","status":"True"},{"type":"Stalled","status":"True"}]}}`,
		`{"status":{"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True",` +
			`"reason":"NewReplicaSetAvailable"}],"replicas":1,"updatedReplicas":1},"spec":{"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":[]}]},"replicas":-1}}`,
		`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"x%","partition":-9}}},` +
			`"status":{"desiredNumberScheduled":-5,"numberUnavailable":1e300}}`,
		`{"status":{"observedGeneration":"2","state":{},"phase":[],"loadBalancer":{"ingress":{}}}}`,
		`{"metadata":{"creationTimestamp":"x","deletionTimestamp":1,"labels":{"a":1}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}}}`,
	} {
		f.Add([]byte(seed))
	}
	kinds := []schema.GroupVersionKind{
		kindOf("example.org/v1", "Widget"), kindOf("v1", "PersistentVolumeClaim"), kindOf("extensions/v1beta1", "DaemonSet"),
		kindOf("policy/v1", "PodDisruptionBudget"),
	}
	for known := range rules {
		kinds = append(kinds, known)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })

	f.Fuzz(func(t *testing.T, content []byte) {
		for _, gvk := range kinds {
			obj := &unstructured.Unstructured{}
			if utiljson.Unmarshal(content, &obj.Object) != nil || obj.Object == nil {
				t.Skip("not a JSON object")
			}
			obj.SetGroupVersionKind(gvk)
			for _, other := range []OtherKinds{OtherKindsFailuresOnly, OtherKindsFullStatus} {
				verdict := check(obj, other) // without the recovery from panics
				if verdict.OldPods != (PodCount{}) && (verdict.Progressing != "" || verdict.OldPods.Selector == "") {
					t.Errorf("%s: a count of Pods is requested without need: %+v", gvk, verdict)
				}
				if verdict.Unobserved && verdict.Unhealthy == "" && verdict.Progressing == "" {
					t.Errorf("%s: an outdated status has no effect: %+v", gvk, verdict)
				}
				if verdict.Err == "" && verdict != check(obj, other) {
					t.Errorf("%s: the second verdict differs", gvk)
				}
			}
		}
	})
}
