package health

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// definitions returns definitions of the kinds with rules that are not part of Kubernetes, and of one kind without a rule, reduced to
// the fields that matter.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		definition("monitoring.coreos.com", "v1", "Prometheus", "prometheuses"),
		definition("monitoring.coreos.com", "v1", "Alertmanager", "alertmanagers"),
		definition("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers"),
		definition("cert.gardener.cloud", "v1alpha1", "Certificate", "certificates"),
		definition("cert.gardener.cloud", "v1alpha1", "Issuer", "issuers"),
		definition("example.org", "v1", "Widget", "widgets"),
	}
}

// definition returns the definition of a kind with a status that may have any content.
func definition(group, version, kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + group,
			// Groups below k8s.io are reserved for Kubernetes.
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						// Lists of the types that server-side apply merges, keyed by strings and by numbers.
						"spec": {Type: "object", XPreserveUnknownFields: ptr.To(true), Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"set":   {Type: "array", XListType: ptr.To("set"), Items: items(apiextensionsv1.JSONSchemaProps{Type: "string"})},
							"sizes": {Type: "array", XListType: ptr.To("set"), Items: items(apiextensionsv1.JSONSchemaProps{Type: "integer"})},
							"list": {Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"port", "name"}, Items: items(
								apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"port", "name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
									"port": {Type: "integer"}, "name": {Type: "string"}, "value": {Type: "string"},
								}},
							)},
						}},
					},
				}},
			}},
		},
	}
}

func items(schema apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaPropsOrArray {
	return &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema}
}
