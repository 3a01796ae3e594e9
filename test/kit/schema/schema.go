// Package schema validates objects against the CustomResourceDefinitions of the project.
package schema

import (
	"io/fs"
	"reflect"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/config/crd"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// Check reports fields that a definition in a directory of config/crd does not have, and values that it does not allow. It
// returns how many of the objects have a definition there.
func Check(t *testing.T, directory string, objects []client.Object) int {
	t.Helper()
	definitions := read(t, directory)
	checked := 0
	for _, each := range objects {
		object := golden.Unstructured(t, each)
		schema := definitions[object.GetAPIVersion()+" "+object.GetKind()]
		if schema == nil {
			continue
		}
		checked++
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, internal, nil); err != nil {
			t.Fatal(err)
		}
		checkObject(t, internal, object)
	}
	return checked
}

func checkObject(t *testing.T, schema *apiextensions.JSONSchemaProps, object *unstructured.Unstructured) {
	t.Helper()
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range validation.ValidateCustomResource(nil, object.Object, validator) {
		t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), problem)
	}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		t.Fatal(err)
	}
	pruned := object.DeepCopy()
	pruning.Prune(pruned.Object, structural, true)
	if !reflect.DeepEqual(pruned.Object, object.DeepCopy().Object) {
		t.Errorf("%s %s has fields that its definition does not have; without them it is %v", object.GetKind(), object.GetName(), pruned.Object)
	}
}

// read returns the schemas by API version and kind.
func read(t *testing.T, directory string) map[string]*apiextensionsv1.JSONSchemaProps {
	t.Helper()
	files, err := fs.Glob(crd.Files, directory+"/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found the files %v: %v", files, err)
	}
	schemas := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		content, err := fs.ReadFile(crd.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		definition := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition.Spec.Versions {
			schemas[definition.Spec.Group+"/"+version.Name+" "+definition.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema
		}
	}
	return schemas
}
