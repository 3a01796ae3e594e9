package manifest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// labelTemplates sets labels in the templates of an object: pod templates and volume claim templates.
func labelTemplates(obj map[string]any, gk schema.GroupKind, labels map[string]string) {
	spec, ok := obj["spec"].(map[string]any)
	if !ok {
		return
	}
	if gk == (schema.GroupKind{Group: "batch", Kind: "CronJob"}) {
		if jobTemplate, ok := spec["jobTemplate"].(map[string]any); ok {
			labelTemplates(jobTemplate, schema.GroupKind{Group: "batch", Kind: "Job"}, labels)
		}
		return
	}
	if template, ok := spec["template"].(map[string]any); ok && isObjectTemplate(template) {
		setLabels(template, labels)
	}
	if claims, ok := spec["volumeClaimTemplates"].([]any); ok {
		for _, claim := range claims {
			if claim, ok := claim.(map[string]any); ok {
				setLabels(claim, labels)
			}
		}
	}
}

// isObjectTemplate distinguishes templates of objects from other fields of custom resources with the name template.
func isObjectTemplate(template map[string]any) bool {
	_, hasMetadata := template["metadata"].(map[string]any)
	_, hasSpec := template["spec"].(map[string]any)
	return hasMetadata || hasSpec
}

func setLabels(template map[string]any, labels map[string]string) {
	target := mapAt(mapAt(template, "metadata"), "labels")
	for key, value := range labels {
		target[key] = value
	}
}

// addDefinedScopes adds the scopes of the kinds that a CustomResourceDefinition defines, unless they are known.
func addDefinedScopes(scopes map[schema.GroupVersionKind]Scope, obj map[string]any) {
	ref, err := RefOf(obj)
	if err != nil || ref.GroupKind() != object.Definition {
		return
	}
	kinds, scope := definedKinds(obj)
	for _, kind := range kinds {
		if scopes[kind] == ScopeUnknown {
			scopes[kind] = scope
		}
	}
}

// definedKinds returns the served kinds of a CustomResourceDefinition and their scope.
func definedKinds(definition map[string]any) ([]schema.GroupVersionKind, Scope) {
	spec, _ := definition["spec"].(map[string]any)
	group, _ := spec["group"].(string)
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	versions, _ := spec["versions"].([]any)

	var kinds []schema.GroupVersionKind
	for _, version := range versions {
		version, _ := version.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served {
			kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	switch spec["scope"] {
	case "Cluster":
		return kinds, ScopeCluster
	case "Namespaced":
		return kinds, ScopeNamespaced
	}
	return kinds, ScopeUnknown
}

// templateLabels returns the paths of the managed-by label in pod templates.
func templateLabels() []fieldowner.Pattern {
	patterns := fieldowner.Templates()
	for i := range patterns {
		patterns[i] = append(patterns[i], "metadata", "labels", resourcesv1alpha1.LabelManagedBy)
	}
	return patterns
}

// hasTemplateLabel reports whether a pod template of the object has the managed-by label.
func hasTemplateLabel(obj map[string]any) bool {
	return slices.ContainsFunc(templateLabels(), func(label fieldowner.Pattern) bool { return label.Has(obj) })
}

// adopted returns the manifest without the managed-by label in its pod template. It is nil if the body does not contain
// the label.
func adopted(manifest object.Manifest, obj map[string]any) (*object.Manifest, error) {
	if !hasTemplateLabel(obj) {
		return nil, nil
	}
	for _, label := range templateLabels() {
		label.Strip(obj)
	}
	body, err := object.EncodeBody(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", manifest.Ref, err)
	}
	without := manifest
	if without.Initial == nil {
		without.Initial = manifest.Body
	}
	without.Changed, without.OnlyOnChange = nil, nil
	without.Body, without.Digest = body, object.Digest(body)
	return &without, nil
}
