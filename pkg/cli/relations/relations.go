// Package relations formats and parses the fields of ManagedResources that specify dependencies, the order of
// deletion, and
// fields that are sent only when their object changes.
package relations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// Relations are the relations of a ManagedResource in the JSON and YAML output.
type Relations struct {
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// DeletedAfter are the names in deleteAfter. It is empty and not nil if the deletion waits for no ManagedResource.
	DeletedAfter []string `json:"deletedAfter,omitzero"`
	// OnlyOnChange are the rules for fields that are sent only when their object changes.
	OnlyOnChange []string `json:"onlyOnChange,omitempty"`
	// FinalizeDeletionAfter is the value of the annotation, if it is a positive duration.
	FinalizeDeletionAfter string `json:"finalizeDeletionAfter,omitempty"`
}

// Dependency is a dependency of a ManagedResource, with defaults.
type Dependency struct {
	Name  string                            `json:"name"`
	Until resourcesv1alpha1.DependencyUntil `json:"until"`
	For   resourcesv1alpha1.DependencyFor   `json:"for"`
}

// Of returns the relations of a ManagedResource.
func Of(mr *resourcesv1alpha1.ManagedResource) Relations {
	relations := Relations{}
	for _, dependency := range mr.Spec.DependsOn {
		relations.DependsOn = append(relations.DependsOn, Dependency{
			Name:  dependency.NameFrom(mr.Namespace).String(),
			Until: cmp.Or(dependency.Until, resourcesv1alpha1.UntilHealthy), For: cmp.Or(dependency.For, resourcesv1alpha1.ForChanges),
		})
	}
	if names, set := mr.DeletedAfter(); set {
		relations.DeletedAfter = []string{}
		for _, name := range names {
			relations.DeletedAfter = append(relations.DeletedAfter, name.String())
		}
	}
	if detection := mr.Spec.DriftDetection; detection != nil {
		for _, rule := range detection.OnlyOnChange {
			relations.OnlyOnChange = append(relations.OnlyOnChange, textOf(rule)...)
		}
	}
	if after := FinalizesAfter(mr); after > 0 {
		relations.FinalizeDeletionAfter = after.String()
	}
	return relations
}

// FinalizesAfter returns how long after the start of its deletion the finalizers of the objects of a ManagedResource
// are removed.
// It returns zero for never. An annotation that is not a positive duration has no effect.
func FinalizesAfter(mr *resourcesv1alpha1.ManagedResource) time.Duration {
	after, err := time.ParseDuration(mr.Annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter])
	if err != nil || after <= 0 {
		return 0
	}
	return after
}

// Required describes the state that a dependency must have reached.
func (d Dependency) Required() string {
	text := "must be applied and healthy"
	switch d.Until {
	case resourcesv1alpha1.UntilApplied:
		text = "must be applied"
	case resourcesv1alpha1.UntilRolledOut:
		text = "must be applied, healthy and rolled out"
	}
	if d.For == resourcesv1alpha1.ForCreation {
		text += "; changes after the creation do not wait for it"
	}
	return text
}

// String returns a dependency in the format of ParseDependency, without defaults.
func (d Dependency) String() string {
	text := d.Name
	if d.Until != resourcesv1alpha1.UntilHealthy {
		text += ":" + string(d.Until)
	}
	if d.For != resourcesv1alpha1.ForChanges {
		text += ":" + string(d.For)
	}
	return text
}

// ParseDependency parses [NAMESPACE/]NAME[:UNTIL][:FOR]. A name without a namespace is in the given namespace.
func ParseDependency(text, namespace string) (resourcesv1alpha1.Dependency, error) {
	parts := strings.Split(text, ":")
	name := console.ParseName(parts[0], namespace)
	dependency := resourcesv1alpha1.Dependency{Namespace: name.Namespace, Name: name.Name}
	if name.Name == "" {
		return dependency, fmt.Errorf("the dependency %q has no name: use [NAMESPACE/]NAME[:UNTIL][:FOR]", text)
	}
	for _, part := range parts[1:] {
		until, which := resourcesv1alpha1.DependencyUntil(part), resourcesv1alpha1.DependencyFor(part)
		switch {
		case dependency.Until == "" && slices.Contains(untils, until):
			dependency.Until = until
		case dependency.For == "" && slices.Contains(fors, which):
			dependency.For = which
		default:
			return dependency, fmt.Errorf("the dependency %q has an invalid %q: after the name, use one of Applied, Healthy, RolledOut, "+
				"and one of Creation, Changes", text, part)
		}
	}
	return dependency, nil
}

var (
	untils = []resourcesv1alpha1.DependencyUntil{
		resourcesv1alpha1.UntilApplied, resourcesv1alpha1.UntilHealthy, resourcesv1alpha1.UntilRolledOut,
	}
	fors = []resourcesv1alpha1.DependencyFor{resourcesv1alpha1.ForCreation, resourcesv1alpha1.ForChanges}
)

// ParseReference parses [NAMESPACE/]NAME. A name without a namespace is in the given namespace.
func ParseReference(text, namespace string) (resourcesv1alpha1.ManagedResourceReference, error) {
	name := console.ParseName(text, namespace)
	if name.Name == "" || strings.Contains(name.Name, ":") {
		return resourcesv1alpha1.ManagedResourceReference{}, fmt.Errorf("%q is not the name of a ManagedResource: use [NAMESPACE/]NAME", text)
	}
	return resourcesv1alpha1.ManagedResourceReference{Namespace: name.Namespace, Name: name.Name}, nil
}

// ParseRule parses [KIND[.GROUP][/NAME]:]PATH.
func ParseRule(text string) (resourcesv1alpha1.IgnoreRule, error) {
	selector, path, found := strings.Cut(text, ":")
	if strings.HasPrefix(text, "/") {
		selector, path, found = "", text, true
	}
	if !found || !strings.HasPrefix(path, "/") {
		return resourcesv1alpha1.IgnoreRule{}, fmt.Errorf("%q does not name a field: "+
			"use [KIND[.GROUP][/NAME]:]PATH, with a JSON pointer such as "+
			"/metadata/annotations/gardener.cloud~1operation", text)
	}
	rule := resourcesv1alpha1.IgnoreRule{Paths: []string{path}}
	selector, rule.Name, _ = strings.Cut(selector, "/")
	rule.Kind, rule.Group, _ = strings.Cut(selector, ".")
	return rule, nil
}

// textOf returns a rule in the format of ParseRule, once for each path.
func textOf(rule resourcesv1alpha1.IgnoreRule) []string {
	selector := rule.Kind
	if rule.Group != "" {
		selector += "." + rule.Group
	}
	if rule.Name != "" {
		selector += "/" + rule.Name
	}
	texts := make([]string, 0, len(rule.Paths))
	for _, path := range rule.Paths {
		if selector != "" {
			path = selector + ":" + path
		}
		texts = append(texts, path)
	}
	return texts
}

// Dependents returns the names of the ManagedResources that the deletion of mr waits for: those in deleteAfter, or
// else those among
// the others that depend on it.
func Dependents(mr *resourcesv1alpha1.ManagedResource, others []resourcesv1alpha1.ManagedResource) []types.NamespacedName {
	named, set := mr.DeletedAfter()
	own := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
	var names []types.NamespacedName
	for i := range others {
		name := types.NamespacedName{Namespace: others[i].Namespace, Name: others[i].Name}
		if name != own && (set && slices.Contains(named, name) || !set && slices.Contains(others[i].Dependencies(), own)) {
			names = append(names, name)
		}
	}
	return names
}
