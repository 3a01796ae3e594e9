package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
)

// unknownFieldHint returns an error message for an unknown field that suggests what to write instead.
func unknownFieldHint(path, key string, fields map[string]reflect.Type) string {
	if hint := documentedMistake(path); hint != "" {
		return "unknown field: " + hint
	}
	for name := range fields {
		if strings.EqualFold(name, key) {
			return fmt.Sprintf("unknown field: upper and lower case matter, write %q", name)
		}
	}
	return "unknown field: remove it, or use any of " + joinedNames(fields)
}

// documentedMistake returns a hint for field names that appear in gardener-resource-manager's documents but not in its
// code.
func documentedMistake(path string) string {
	switch path {
	case "sourceClientConnection.namespace", "targetClientConnection.namespace":
		return fmt.Sprintf("use %ss, which is a list", path)
	case "controllers.node":
		return "the settings of this controller are in controllers.nodeCriticalComponents, such as controllers.nodeCriticalComponents.backoff"
	case "controllers.tokenValidator", "webhooks.tokenValidator":
		return "use " + strings.Replace(path, "tokenValidator", "tokenInvalidator", 1)
	default:
		return ""
	}
}
