package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/openapi"
)

// customGroup is the group of the CustomResourceDefinition.
const customGroup = "bench.example.com"

// definition returns a CustomResourceDefinition for objects like Shoots. Its schema is generated from the OpenAPI
// definitions of the garden.
func definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	schema, err := shootSchema()
	if err != nil {
		return nil, fmt.Errorf("generate the schema of a CustomResourceDefinition: %w", err)
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "shoots." + customGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: customGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shoots", Singular: "shoot", Kind: "Shoot", ListKind: "ShootList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gardencorev1beta1.SchemeGroupVersion.Version, Served: true, Storage: true,
				Schema:           &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
				Subresources:     &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				SelectableFields: []apiextensionsv1.SelectableField{{JSONPath: ".spec.seedName"}},
			}},
		},
	}, nil
}

func shootSchema() (*apiextensionsv1.JSONSchemaProps, error) {
	encoded, err := json.Marshal(map[string]string{"$ref": gardencorev1beta1.Shoot{}.OpenAPIModelName()})
	if err != nil {
		return nil, err
	}
	root := map[string]any{}
	if err := json.Unmarshal(encoded, &root); err != nil {
		return nil, err
	}
	resolved, err := resolver(definitions()).resolve(root)
	if err != nil {
		return nil, err
	}
	if encoded, err = json.Marshal(resolved); err != nil {
		return nil, err
	}
	schema := &apiextensionsv1.JSONSchemaProps{}
	return schema, json.Unmarshal(encoded, schema)
}

func definitions() map[string]spec.Schema {
	all := map[string]spec.Schema{}
	for name, definition := range openapi.GetOpenAPIDefinitions(spec.MustCreateRef) {
		all[name] = definition.Schema
	}
	return all
}

// resolver generates schemas without references from OpenAPI definitions, as a CustomResourceDefinition requires.
type resolver map[string]spec.Schema

// resolve returns a schema in which references are replaced by their targets.
func (r resolver) resolve(schema map[string]any) (map[string]any, error) {
	if name, ok := reference(schema); ok {
		if known := special(name); known != nil {
			return known, nil
		}
		definition, ok := r[name]
		if !ok {
			return nil, fmt.Errorf("the OpenAPI definition %q is missing", name)
		}
		encoded, err := json.Marshal(definition)
		if err != nil {
			return nil, err
		}
		schema = map[string]any{}
		if err := json.Unmarshal(encoded, &schema); err != nil {
			return nil, err
		}
	}
	for key := range schema {
		if key == "default" || strings.HasPrefix(key, "x-kubernetes-patch") || key == "x-kubernetes-group-version-kind" {
			delete(schema, key)
		}
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, property := range properties {
			inner, ok := property.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("the schema of the property %s is not an object", name)
			}
			resolved, err := r.resolve(inner)
			if err != nil {
				return nil, err
			}
			properties[name] = resolved
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[key].(map[string]any); ok {
			resolved, err := r.resolve(inner)
			if err != nil {
				return nil, err
			}
			schema[key] = resolved
		}
	}
	dropOptionalKeys(schema)
	return schema, nil
}

// reference returns the name of the definition that a schema refers to, directly or with a single allOf.
func reference(schema map[string]any) (string, bool) {
	if all, ok := schema["allOf"].([]any); ok && len(all) == 1 {
		if only, ok := all[0].(map[string]any); ok {
			schema = only
		}
	}
	name, ok := schema["$ref"].(string)
	return name, ok
}

// special returns the schema of types for which CustomResourceDefinitions have a special form.
func special(name string) map[string]any {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "ObjectMeta":
		return map[string]any{"type": "object"}
	case "Quantity", "IntOrString":
		return map[string]any{"x-kubernetes-int-or-string": true}
	case "RawExtension":
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	case "JSON":
		return map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	default:
		return nil
	}
}

// dropOptionalKeys makes a list atomic if its keys are optional fields, because a CustomResourceDefinition does
// not allow such keys.
func dropOptionalKeys(schema map[string]any) {
	keys, ok := schema["x-kubernetes-list-map-keys"].([]any)
	if !ok {
		return
	}
	items, _ := schema["items"].(map[string]any)
	required, _ := items["required"].([]any)
	if slices.ContainsFunc(keys, func(key any) bool { return !slices.Contains(required, key) }) {
		delete(schema, "x-kubernetes-list-map-keys")
		schema["x-kubernetes-list-type"] = "atomic"
	}
}
