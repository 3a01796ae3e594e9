package openapi_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/openapi"
)

// TestDefinitionsAreComplete checks that each served kind, and each type that a definition refers to, has a definition under
// its model name.
func TestDefinitionsAreComplete(t *testing.T) {
	definitions := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) })
	scheme := runtime.NewScheme()
	if err := served.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, of := range scheme.AllKnownTypes() {
		if !strings.Contains(of.PkgPath(), "/trellis/") {
			continue
		}
		group, _, _ := strings.Cut(kind.Group, ".")
		name := "cloud.gardener." + group + "." + kind.Version + "." + kind.Kind
		if _, found := definitions[name]; !found {
			t.Errorf("%s has no definition %s", kind, name)
		}
		if named, is := reflect.New(of).Interface().(interface{ OpenAPIModelName() string }); !is || named.OpenAPIModelName() != name {
			t.Errorf("%s is not called %s", kind, name)
		}
	}
	for name, definition := range definitions {
		for _, dependency := range definition.Dependencies {
			if _, found := definitions[dependency]; !found {
				t.Errorf("%s refers to %s, which has no definition", name, dependency)
			}
		}
	}
}

// TestListsHaveKeys checks that the OpenAPI definitions have the keys that server-side apply needs for lists of named items.
func TestListsHaveKeys(t *testing.T) {
	definitions := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) })
	workers := definitions["cloud.gardener.core.v1beta1.Provider"].Schema.Properties["workers"]
	if workers.Extensions["x-kubernetes-list-type"] != "map" || workers.Extensions["x-kubernetes-patch-merge-key"] != "name" {
		t.Errorf("%v", workers.Extensions)
	}
}
