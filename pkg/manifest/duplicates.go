package manifest

import (
	"encoding/json"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// dropDuplicates drops what an object says twice to the same effect, in lists in which the API server refuses
// duplicates by server-side apply, but accepts them by update, as gardener-resource-manager sends it. What would have another effect stays,
// and is refused by the API server, which names it. Lists of custom resources are left alone.
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

// podSpecOf returns the spec of the pods that an object of one of Kubernetes' own kinds is or makes; nil if there is none.
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

// dropCopies drops entries of lists that are equal to an earlier one.
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

// reference finds the environment variables that a value refers to. An escaped reference, $$(NAME), counts too, which is on
// the safe side.
var reference = regexp.MustCompile(`\$\(([^)]*)\)`)

// dropHidden drops environment variables that a later one of the same name hides: the kubelet gives a container the last
// value. An earlier one counts only for the references to it up to the later one, so it stays if there are any.
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
