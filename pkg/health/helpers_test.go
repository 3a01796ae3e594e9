package health

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// expectation is an object, without apiVersion and kind, and the expected verdict.
type expectation struct {
	object string
	want   Verdict
}

// checkAll checks objects of one kind in unstructured form and, if client-go knows the kind, in typed form.
func checkAll(t *testing.T, apiVersion, kind string, tests map[string]expectation) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			obj := objectOf(t, "apiVersion: "+apiVersion+"\nkind: "+kind+"\n"+test.object)
			before := obj.DeepCopy()
			expectVerdict(t, obj, test.want)
			if len(obj.Object) != len(before.Object) {
				t.Error("the check changed the object")
			}
			if typed, err := scheme.Scheme.New(obj.GroupVersionKind()); err == nil && test.want.Err == "" {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
					t.Fatal(err)
				}
				typed.GetObjectKind().SetGroupVersionKind(obj.GroupVersionKind().GroupVersion().WithKind(""))
				expectVerdict(t, typed, test.want)
			}
		})
	}
}

func expectVerdict(t *testing.T, obj runtime.Object, want Verdict) {
	t.Helper()
	for _, other := range []OtherKinds{OtherKindsFailuresOnly, OtherKindsFullStatus} {
		got := Check(obj, other)
		if want.Err != "" && strings.Contains(got.Err, want.Err) {
			got.Err = want.Err
		}
		if got != want {
			t.Errorf("%T, %s:\n got %+v\nwant %+v", obj, other, got, want)
		}
	}
}

// objectOf decodes YAML like the client.
func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// stale is the verdict if the status is from generation 1 and the object has generation 2.
var stale = unobserved("observed generation outdated (1/2)")
