package manifest

import (
	"encoding/json"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// dropDuplicates removes duplicates without effect from lists. Server-side apply rejects duplicates in these lists,
// while an update, as sent by gardener-resource-manager, accepts them. Duplicates with an effect stay, so that the API
// server rejects and names them. Lists of custom resources are not changed.
func dropDuplicates(obj map[string]any, gk schema.GroupKind) {
	if meta, ok := obj["metadata"].(map[string]any); ok {
		dropCopies(meta, "finalizers", "ownerReferences")
	}
	if gk == (schema.GroupKind{Kind: "ServiceAccount"}) {
		dropCopies(obj, "secrets", "imagePullSecrets")
	}
	spec := podSpecOf(obj, gk)
	dropCopies(spec, "imagePullSecrets", "hostAliases")
	for _, field := range []string{"containers", "initContainers"} {
		containers, _ := spec[field].([]any)
		for _, container := range containers {
			if container, ok := container.(map[string]any); ok {
				dropCopies(container, "ports")
				dropHidden(container)
			}
		}
	}
}

// podSpecOf returns the Pod spec of an object of a built-in kind. It is nil if there is none.
func podSpecOf(obj map[string]any, gk schema.GroupKind) map[string]any {
	var path []string
	switch {
	case gk == schema.GroupKind{Kind: "Pod"}:
		path = []string{"spec"}
	case gk == schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case gk == schema.GroupKind{Kind: "PodTemplate"}:
		path = []string{"template", "spec"}
	case slices.Contains([]string{"", "apps", "batch", "extensions"}, gk.Group):
		path = []string{"spec", "template", "spec"}
	default:
		return nil
	}
	for _, field := range path {
		obj, _ = obj[field].(map[string]any)
	}
	return obj
}

// dropCopies removes list entries that are equal to an earlier one.
func dropCopies(parent map[string]any, fields ...string) {
	for _, field := range fields {
		list, ok := parent[field].([]any)
		if !ok || len(list) < 2 {
			continue
		}
		seen := map[string]bool{}
		parent[field] = slices.DeleteFunc(list, func(entry any) bool {
			text, err := json.Marshal(entry) // keys are sorted
			copied := err == nil && seen[string(text)]
			seen[string(text)] = true
			return copied
		})
	}
}

// reference matches references to environment variables in a value. Escaped references, $$(NAME), also match, which is
// safe.
var reference = regexp.MustCompile(`\$\(([^)]*)\)`)

// dropHidden removes environment variables that a later one with the same name overrides, because the kubelet uses the
// last value. An earlier one still matters for references to it that come before the later one, so it stays if there
// are any.
func dropHidden(container map[string]any) {
	env, ok := container["env"].([]any)
	if !ok {
		return
	}
	defined, referred := map[string]bool{}, map[string]bool{}
	kept := make([]any, 0, len(env))
	for _, entry := range slices.Backward(env) {
		variable, _ := entry.(map[string]any)
		name, _ := variable["name"].(string)
		if defined[name] && !referred[name] {
			continue
		}
		if name != "" {
			defined[name], referred[name] = true, false
		}
		value, _ := variable["value"].(string)
		for _, match := range reference.FindAllStringSubmatch(value, -1) {
			referred[match[1]] = true
		}
		kept = append(kept, entry)
	}
	slices.Reverse(kept)
	container["env"] = kept
}
