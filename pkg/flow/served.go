package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Schema is the schema of ManagedResources that the API server serves.
type Schema struct {
	properties *apiextensionsv1.JSONSchemaProps
}

// managedResources is the name of the CustomResourceDefinition of ManagedResources.
var managedResources = "managedresources." + resourcesv1alpha1.SchemeGroupVersion.Group

// ServedSchema reads the schema of ManagedResources that the API server serves. It may be older than this program.
func ServedSchema(ctx context.Context, reader client.Reader) (*Schema, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := reader.Get(ctx, client.ObjectKey{Name: managedResources}, &definition, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinition %s: %w", managedResources, err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == resourcesv1alpha1.SchemeGroupVersion.Version && version.Served && version.Schema != nil {
			return &Schema{version.Schema.OpenAPIV3Schema}, nil
		}
	}
	return nil, fmt.Errorf("the CustomResourceDefinition %s does not serve %s", managedResources, resourcesv1alpha1.SchemeGroupVersion.Version)
}

// waits returns a wait that holds the whole plan if a bundle uses a field that the API server does not know. The plan
// cannot be emitted partially, because the unknown field might define its order.
func (s *Schema) waits(plan Plan) []Wait {
	unknown := map[string]bool{}
	for _, bundle := range plan.Bundles {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&bundle.Spec)
		if err != nil || s.properties == nil {
			continue // Decide returns an error for bundles that cannot be encoded
		}
		findUnknown(content, s.properties.Properties["spec"], "spec", unknown)
	}
	if len(unknown) == 0 {
		return nil
	}
	return []Wait{{
		Name: "managedresource-definition", HoldsAll: true,
		Reason: fmt.Sprintf("the CustomResourceDefinition of ManagedResources must be updated: it lacks %v", slices.Sorted(maps.Keys(unknown))),
	}}
}

// findUnknown adds the fields of a value that a schema does not contain to unknown.
func findUnknown(value any, schema apiextensionsv1.JSONSchemaProps, path string, unknown map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			known, found := schema.Properties[name]
			switch {
			case found:
				findUnknown(field, known, path+"."+name, unknown)
			case schema.AdditionalProperties == nil && (schema.XPreserveUnknownFields == nil || !*schema.XPreserveUnknownFields):
				unknown[path+"."+name] = true
			}
		}
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			return
		}
		for _, item := range value {
			findUnknown(item, *schema.Items.Schema, path+"[]", unknown)
		}
	}
}

// DropSchemas is a cache transformation that drops all schemas except the one of ManagedResources, which [ServedSchema] reads. Flows read
// only the names of the other definitions.
func DropSchemas(object any) (any, error) {
	definition, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return object, nil
	}
	definition.ManagedFields = nil
	if definition.Spec.Group != resourcesv1alpha1.GroupName {
		definition.Annotations = nil
		for i := range definition.Spec.Versions {
			definition.Spec.Versions[i].Schema = nil
		}
	}
	return definition, nil
}
