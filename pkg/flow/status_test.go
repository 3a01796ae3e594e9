package flow

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestStatusOfABundle checks that the status of an object is emitted, and is part of the content of its bundle, only if the
// bundle names the object.
func TestStatusOfABundle(t *testing.T) {
	compiled := func(state string, named ...resourcesv1alpha1.ObjectSelector) *revision {
		worker := extension("Worker", "one")
		if err := unstructured.SetNestedField(worker.Object, state, "status", "state"); err != nil {
			t.Fatal(err)
		}
		b := Bundle{Key: Key{Namespace: "a", Name: "b"}, Objects: []client.Object{worker}}
		b.Spec.StatusOnCreation = named
		r, err := compile(b, testScheme())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	worker := resourcesv1alpha1.ObjectSelector{Group: "extensions.gardener.cloud", Kind: "Worker", Name: "one"}
	for name, test := range map[string]struct {
		named []resourcesv1alpha1.ObjectSelector
		want  bool
	}{
		"none":         {},
		"the object":   {[]resourcesv1alpha1.ObjectSelector{worker}, true},
		"the kind":     {[]resourcesv1alpha1.ObjectSelector{{Group: worker.Group, Kind: worker.Kind}}, true},
		"another name": {[]resourcesv1alpha1.ObjectSelector{{Group: worker.Group, Kind: worker.Kind, Name: "two"}}, false},
		"other group":  {[]resourcesv1alpha1.ObjectSelector{{Kind: worker.Kind}}, false},
		"other kind":   {[]resourcesv1alpha1.ObjectSelector{{Group: worker.Group, Kind: "Infrastructure"}}, false},
	} {
		before, after := compiled("machines", test.named...), compiled("changed", test.named...)
		if got := strings.Contains(string(before.texts[0]), "machines"); got != test.want {
			t.Errorf("%s: the status is emitted: %v", name, got)
		}
		if got := before.content != after.content; got != test.want {
			t.Errorf("%s: a changed status changes the revision: %v", name, got)
		}
	}
}
