package apiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// TestEveryKindConverts converts an object and a list of every kind between the internal version and each version in which
// the kind is served, as the API server does for requests and responses.
func TestEveryKindConverts(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range served.Resources() {
		for _, kind := range []string{resource.Kind, resource.Kind + "List"} {
			internal := schema.GroupKind{Group: resource.Group, Kind: kind}.WithVersion(runtime.APIVersionInternal)
			hub, err := scheme.New(internal)
			if err != nil {
				t.Fatal(err)
			}
			external, err := scheme.ConvertToVersion(hub, resource.GroupVersion())
			if err != nil {
				t.Errorf("%s to %s: %v", kind, resource.GroupVersion(), err)
				continue
			}
			if _, err := scheme.ConvertToVersion(external, internal.GroupVersion()); err != nil {
				t.Errorf("%s from %s: %v", kind, resource.GroupVersion(), err)
			}
		}
	}
}
