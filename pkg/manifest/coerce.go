package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// coerceMetadata turns the numbers and booleans among an object's labels and annotations into strings, as their author most likely meant
// them. It returns the paths of those. All else that is not a string stays, for an error.
func coerceMetadata(obj map[string]any) []string {
	var paths []string
	meta, _ := obj["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := meta[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if text, ok := textOf(values[key]); ok {
				values[key] = text
				paths = append(paths, fmt.Sprintf("metadata.%s[%q]", field, key))
			}
		}
	}
	return paths
}

// textOf returns a number or a boolean as JSON has it, without an exponent.
func textOf(value any) (string, bool) {
	switch value := value.(type) {
	case bool:
		return strconv.FormatBool(value), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), true
	}
	return "", false
}

// describeCoerced names an object and what of it was not a string. It repeats no values.
func describeCoerced(ref object.Ref, paths []string) string {
	const shown = 5
	if len(paths) > shown {
		paths = append(slices.Clone(paths[:shown]), "…")
	}
	return ref.String() + ": " + strings.Join(paths, ", ")
}
