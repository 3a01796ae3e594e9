package fieldowner

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// anyItem is the part of a Pattern that matches every item of a list or every key of a map.
const anyItem = "*"

// Pattern is the path of a field and its descendants, starting at the top of the object. "*" matches every item of a
// list or every key of a map.
type Pattern []string

// matches reports whether the path is the field or a descendant of it.
func (p Pattern) matches(path fieldpath.Path) bool {
	if len(path) < len(p) {
		return false
	}
	for i, part := range p {
		switch {
		case part == anyItem:
		case path[i].FieldName == nil || *path[i].FieldName != part:
			return false
		}
	}
	return true
}

// Strip removes the fields that match the pattern from an object.
func (p Pattern) Strip(obj map[string]any) {
	strip(obj, p)
}

func strip(value any, pattern Pattern) {
	part, rest := pattern[0], pattern[1:]
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			if part != anyItem && part != key {
				continue
			}
			if len(rest) == 0 {
				delete(value, key)
			} else {
				strip(value[key], rest)
			}
		}
	case []any:
		if part != anyItem || len(rest) == 0 {
			return
		}
		for _, item := range value {
			strip(item, rest)
		}
	}
}

// Has reports whether the object has a field that matches the pattern.
func (p Pattern) Has(obj map[string]any) bool {
	return has(obj, p)
}

func has(value any, pattern Pattern) bool {
	if len(pattern) == 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		if pattern[0] != anyItem {
			child, ok := value[pattern[0]]
			return ok && has(child, pattern[1:])
		}
		for _, child := range value {
			if has(child, pattern[1:]) {
				return true
			}
		}
	case []any:
		return pattern[0] == anyItem && slices.ContainsFunc(value, func(item any) bool { return has(item, pattern[1:]) })
	}
	return false
}

// templates are the paths of pod templates in workloads.
var templates = []Pattern{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}}

// Templates returns the paths of pod templates in workloads: a CronJob has it in the template of its Jobs, all others
// in their spec.
func Templates() []Pattern {
	return slices.Clone(templates)
}

// ClaimSize returns the path of the requested size of a PersistentVolumeClaim.
func ClaimSize() Pattern { return Pattern{"spec", "resources", "requests", "storage"} }

// Restarts returns the paths of the annotation that kubectl rollout restart sets.
func Restarts() []Pattern {
	patterns := Templates()
	for i := range patterns {
		patterns[i] = append(patterns[i], "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
	}
	return patterns
}

// ComputeResources returns the requests and limits of CPU and memory in the containers of a workload.
func ComputeResources() []Pattern {
	var patterns []Pattern
	for _, template := range Templates() {
		for _, list := range []string{"requests", "limits"} {
			for _, resource := range []string{"cpu", "memory"} {
				patterns = append(patterns,
					slices.Concat(template, Pattern{"spec", "containers", anyItem, "resources", list, resource}))
			}
		}
	}
	return patterns
}

// StripPaths removes the fields of a set from an object. It ignores paths that do not exist in the object.
func StripPaths(obj map[string]any, set *fieldpath.Set) {
	for path := range set.All() {
		stripPath(obj, path)
	}
}

func stripPath(value any, path fieldpath.Path) {
	switch value := value.(type) {
	case map[string]any:
		if len(path) == 0 || path[0].FieldName == nil {
			return
		}
		if len(path) == 1 {
			delete(value, *path[0].FieldName)
			return
		}
		stripPath(value[*path[0].FieldName], path[1:])
	case []any:
		if len(path) == 0 || path[0].Key == nil {
			return
		}
		for _, item := range value {
			if item, ok := item.(map[string]any); ok && hasKey(item, path[0]) {
				stripPath(item, path[1:])
			}
		}
	}
}

// hasKey reports whether a path element identifies a list item.
func hasKey(item map[string]any, element fieldpath.PathElement) bool {
	for _, field := range *element.Key {
		if fmt.Sprint(item[field.Name]) != fmt.Sprint(field.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// Scalable reports whether objects of a kind have replicas that a HorizontalPodAutoscaler may own.
func Scalable(gk schema.GroupKind) bool {
	return (gk.Group == "apps" || gk.Group == "extensions") && (gk.Kind == "Deployment" || gk.Kind == "StatefulSet")
}

// Replicas returns the path of the number of replicas of a workload.
func Replicas() Pattern {
	return Pattern{"spec", "replicas"}
}
