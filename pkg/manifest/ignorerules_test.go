package manifest

import (
	"reflect"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
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
