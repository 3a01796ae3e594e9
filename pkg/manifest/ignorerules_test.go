package manifest

import (
	"reflect"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestPatternOf(t *testing.T) {
	for pointer, want := range map[string]fieldowner.Pattern{
		"/spec/replicas":                 {"spec", "replicas"},
		"/metadata/annotations/a~1b~0c":  {"metadata", "annotations", "a/b~c"},
		"/spec/containers/*/image":       {"spec", "containers", "*", "image"},
		"":                               nil,
		"/":                              nil,
		"spec/replicas":                  nil,
		"/spec/containers/0/image":       nil,
		"/kind":                          nil,
		"/metadata/name":                 nil,
		"/metadata":                      nil,
		"/metadata/finalizers":           nil,
		"/metadata/labels/kubernetes.io": {"metadata", "labels", "kubernetes.io"},
		"/*":                             nil,
		"/*/name":                        nil,
		"/metadata/*/*":                  nil,
		"/metadata/labels/*":             nil,
		"/metadata/annotations/*":        nil,
		"/metadata/*/x":                  {"metadata", "*", "x"},
		"/metadata/labels/resources.gardener.cloud~1managed-by":  nil,
		"/metadata/annotations/resources.gardener.cloud~1origin": nil,
	} {
		got, err := patternOf(pointer)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: got %v (%v), want %v", pointer, got, err, want)
		}
	}
}

// TestOnlyOnChange checks that the fields are part of the requests for creations and changes, but not of other requests, and
// that they count for the digest.
func TestOnlyOnChange(t *testing.T) {
	rules, err := ParseOnlyOnChangeRules(&resourcesv1alpha1.DriftDetection{OnlyOnChange: []resourcesv1alpha1.IgnoreRule{
		{Kind: "ConfigMap", Paths: []string{"/metadata/annotations/operation"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	render := func(operation string) object.Manifest {
		annotations := map[string]any{}
		if operation != "" {
			annotations["operation"] = operation
		}
		obj := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a", "annotations": annotations},
			"immutable": true,
		}
		rendered := Render([]Document{{Object: obj}}, nil, nil, RenderOptions{OnlyOnChange: rules})
		if len(rendered.Errors) > 0 || len(rendered.Manifests) != 1 {
			t.Fatal(rendered.Errors)
		}
		return rendered.Manifests[0]
	}
	with, other, without := render("reconcile"), render("restore"), render("")
	for name, test := range map[string]struct {
		body []byte
		want bool
	}{"body": {with.Body, false}, "initial": {with.Initial, true}, "changed": {with.Changed, true}} {
		if got := strings.Contains(string(test.body), "reconcile"); got != test.want {
			t.Errorf("%s: %s", name, test.body)
		}
	}
	if with.Digest == other.Digest || with.Digest == without.Digest {
		t.Error("the digest does not change with the field")
	}
	if without.Changed != nil || without.Initial != nil {
		t.Error("there is more than one body although the field is missing")
	}
}
