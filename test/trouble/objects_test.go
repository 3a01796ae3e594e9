package trouble

import (
	"fmt"
	"strings"
)

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: %q}\n", name, value)
}

func service(name string, port int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {clusterIP: None, selector: {app: %[1]s}, ports: [{name: http, port: %d, protocol: TCP}]}\n", name, port)
}

// later returns a manifest of an object that is applied after the others, and deleted before them.
func later(manifest string) string {
	return strings.Replace(manifest, "metadata: {", `metadata: {annotations: {argocd.argoproj.io/sync-wave: "1"}, `, 1)
}

func role(name string, revision int) string {
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %s}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get], resourceNames: [of-%d]}]
`, name, revision)
}

// within reports whether everything in one value is also in another one, which may have more fields.
func within(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		fields, is := whole.(map[string]any)
		for name, value := range part {
			if !is || !within(value, fields[name]) {
				return false
			}
		}
		return is
	case []any:
		items, is := whole.([]any)
		if !is || len(items) != len(part) {
			return false
		}
		for i := range part {
			if !within(part[i], items[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(part) == fmt.Sprint(whole) // numbers have one of two types
}
