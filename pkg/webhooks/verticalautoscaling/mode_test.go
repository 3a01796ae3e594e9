package verticalautoscaling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

func autoscalers() admittest.Handler[*unstructured.Unstructured] {
	return admittest.Handler[*unstructured.Unstructured]{
		Handler: NewHandler(), Kind: metav1.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"},
		New: func() *unstructured.Unstructured { return &unstructured.Unstructured{} },
		Erase: func(autoscaler *unstructured.Unstructured) {
			unstructured.RemoveNestedField(autoscaler.Object, "metadata", "labels", LabelMutated)
			unstructured.RemoveNestedField(autoscaler.Object, "spec", "updatePolicy", "updateMode")
			removeEmpty(autoscaler.Object, "metadata", "labels")
			removeEmpty(autoscaler.Object, "spec", "updatePolicy")
		},
	}
}

func removeEmpty(object map[string]any, parent, field string) {
	if fields, isMap := object[parent].(map[string]any); isMap {
		if child, isMap := fields[field].(map[string]any); fields[field] == nil || isMap && len(child) == 0 {
			delete(fields, field)
		}
	}
}

func TestMode(t *testing.T) {
	const mutated = `labels: {vpa-in-place-updates.resources.gardener.cloud/mutated: "true"}`
	const target = `targetRef: {apiVersion: apps/v1, kind: Deployment, name: a}`
	cases := map[string]admittest.Case{
		"no policy": {
			Before: "metadata: {name: a}\nspec: {" + target + "}",
			After:  "metadata: {name: a, " + mutated + "}\nspec: {" + target + ", updatePolicy: {updateMode: InPlaceOrRecreate}}",
		},
		"no policy, as null": {
			Before: "metadata: {name: a, labels: null}\nspec: {updatePolicy: null}",
			After:  "metadata: {name: a, " + mutated + "}\nspec: {updatePolicy: {updateMode: InPlaceOrRecreate}}",
		},
		"unknown fields and other labels stay": {
			Before: `
metadata: {name: a, labels: {a: b}, annotations: {c: d}}
spec:
  updatePolicy: {minReplicas: 3, updateMode: Auto, evictionRequirements: [{resources: [cpu], changeRequirement: TargetHigherThanRequests}], new: {a: 1.5, b: 9007199254740993}}
  resourcePolicy: {containerPolicies: [{containerName: "*", new: [1, two]}]}
`,
			After: `
metadata: {name: a, labels: {a: b, vpa-in-place-updates.resources.gardener.cloud/mutated: "true"}, annotations: {c: d}}
spec:
  updatePolicy: {minReplicas: 3, updateMode: InPlaceOrRecreate, evictionRequirements: [{resources: [cpu], changeRequirement: TargetHigherThanRequests}], new: {a: 1.5, b: 9007199254740993}}
  resourcePolicy: {containerPolicies: [{containerName: "*", new: [1, two]}]}
`,
		},
		"no spec": {Before: `metadata: {name: a}`},
	}
	for _, mode := range []string{"{}", "{updateMode: null}", `{updateMode: ""}`, "{updateMode: Auto}", "{updateMode: Recreate}"} {
		cases["changed: "+mode] = admittest.Case{
			Before: "metadata: {name: a}\nspec: {updatePolicy: " + mode + "}",
			After:  "metadata: {name: a, " + mutated + "}\nspec: {updatePolicy: {updateMode: InPlaceOrRecreate}}",
		}
	}
	for _, mode := range []string{`"Off"`, "Initial", "InPlaceOrRecreate", "InPlace", "auto", "1"} {
		cases["unchanged: "+mode] = admittest.Case{Before: "metadata: {name: a}\nspec: {updatePolicy: {updateMode: " + mode + "}}"}
	}
	for _, content := range []string{
		"metadata: {name: a}\nspec: text", "metadata: {name: a}\nspec: {updatePolicy: []}", "metadata: {labels: 1}\nspec: {}", "metadata: []\nspec: {}",
	} {
		cases["not of the API's types: "+content] = admittest.Case{Before: content}
	}
	autoscalers().Run(t, cases)
}

func FuzzMode(f *testing.F) {
	for _, content := range []string{
		`"metadata":{"name":"a"},"spec":{"updatePolicy":{"updateMode":"Auto","x":[{}]}}`, `"metadata":{"labels":{"a":1}},"spec":{"updatePolicy":null}`,
		`"metadata":{},"spec":[{}]`, `"metadata":1,"spec":{}`, `"items":[{"kind":"a"}]`,
	} {
		f.Add([]byte(`{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler",` + content + `}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { autoscalers().Robust(t, raw) })
}
