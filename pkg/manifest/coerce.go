package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// coerceMetadata converts numbers and booleans in the labels and annotations of an object to strings, and returns the
// paths of the converted values. Other values that are not strings stay, and cause an error later.
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

// textOf returns a number or boolean in its JSON notation, without an exponent.
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

// describeCoerced returns a text with the name of an object and the paths of its converted values. It does not contain
// the values.
func describeCoerced(ref object.Ref, paths []string) string {
	const shown = 5
	if len(paths) > shown {
		paths = append(slices.Clone(paths[:shown]), "…")
	}
	return ref.String() + ": " + strings.Join(paths, ", ")
}
