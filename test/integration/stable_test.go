package integration

import (
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// rejected are manifests with several mistakes. API servers name the mistakes in random order, or name a random
// subset.
var rejected = map[string]struct {
	manifest string
	says     []string
}{
	"unknown fields": {
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: NS}\nspec: {a1: 1, b1: 2, c1: 3, selector: {matchLabels: {app: x}, d1: 1}, " +
			"template: {metadata: {labels: {app: x}}, spec: {e1: 1, f1: 2, containers: [{name: c, image: c, g1: 1, h1: 2}]}}}",
		[]string{"spec.a1", "spec.b1", "spec.c1", "d1", "e1", "f1", "g1", "h1"},
	},
	"unknown fields and wrong types": {
		"apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: NS}\nspec: {a1: 1, b1: 2, ports: text, selector: {a: 1, b: 2}}", nil,
	},
	"wrong types": {
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: NS}\ndata: {a: {b: c, d: e}, f: [1, {g: h}], k: 1, l: true}",
		[]string{".data.a", ".data.f", ".data.k", ".data.l"},
	},
	"wrong keys": {
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: NS}\ndata: {\"a b\": p, \"c d\": q, \"e f\": r, \"g h\": s}",
		[]string{"data[a b]", "data[c d]", "data[e f]", "data[g h]"},
	},
	"wrong labels and annotations": {
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: NS, labels: {\"a b\": p, \"c d\": q, \"e f\": r}, annotations: {\"g h\": p, \"i j\": q}}",
		[]string{"a b", "c d", "e f", "g h", "i j"},
	},
	"labels that cannot be converted to strings": {
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: NS, labels: {a: [1], b: [2], c: [3], d: [4]}}",
		[]string{`metadata.labels["a"]`},
	},
	"wrong resources": {
		"apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: NS}\nspec: {containers: [{name: c, image: c, resources: {requests: {cpu: 5, memory: 5, foo: 1}, " +
			"limits: {cpu: 1, memory: 1, baz: 1}}}], nodeSelector: {\"a b\": p, \"c d\": q}}",
		[]string{"requests[foo]", "limits[baz]", "a b", "c d"},
	},
	"entries given twice": {
		"apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: NS}\nspec: {containers: [{name: c, image: c, ports: [{containerPort: 80, name: a}, {containerPort: 80}]}, {name: c, image: d}]}",
		[]string{`[name="c"]`, "containerPort=80"},
	},
	"a custom resource": {
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gears.NS.example.org}\nspec: {group: NS.example.org, scope: Namespaced, " +
			"names: {plural: gears, kind: Gear}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, " +
			"required: [p, q, r], properties: {p: {type: string}, q: {type: string}, r: {type: string}}}}}}}]}\n---\n" +
			"apiVersion: NS.example.org/v1\nkind: Gear\nmetadata: {name: x, namespace: NS}\nspec: {}\n---\n" +
			"apiVersion: NS.example.org/v1\nkind: Gear\nmetadata: {name: other, namespace: NS}\nspec: {p: p, q: q, r: r, a1: 1, b1: 2, c1: 3}",
		[]string{"spec.p", "spec.q", "spec.r", "spec.a1", "spec.b1", "spec.c1"},
	},
}

// TestMessagesOfOneCauseAreEqual repeats an apply that cannot succeed. The condition must not change: otherwise every
// attempt would cost a write to the source cluster and an Event.
func TestMessagesOfOneCauseAreEqual(t *testing.T) {
	for name, test := range rejected {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.strict = true
			f.restart()
			mr := f.manage("set", strings.ReplaceAll(test.manifest, "NS", f.namespace))
			f.reconcileOnce("set")
			first, _, _ := f.reconcile("set") // the first reconcile may wait for a definition
			wantContains(t, applied(first).Message, test.says...)
			if applied(first).Status != resourcesv1alpha1.ConditionFalse {
				t.Errorf("no mistake is reported: %s", applied(first).Message)
			}
			for range 10 {
				again, _, _ := f.reconcile("set")
				if again.ResourceVersion != first.ResourceVersion {
					t.Fatalf("the message changes from %s\nto %s", applied(first).Message, applied(again).Message)
				}
			}
			f.delete(mr)
		})
	}
}
