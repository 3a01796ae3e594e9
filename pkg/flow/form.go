package flow

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// typesLength is the number of characters of the digest of the input types.
	typesLength = 8
	// typesEnd separates the digest of the types from the digest of the inputs.
	typesEnd = "-"
)

// structsByType caches the description of all structs that a type contains. It does not change while the program runs.
var structsByType sync.Map

// typesDigest returns a digest of the types of inputs, including the JSON names of their fields. It changes if a new
// version of the program adds a field. All owners may have a default in that field, so it is then unknown whether the
// declaration has changed too.
func typesDigest(inputs []any) string {
	var lines []string
	for _, input := range inputs {
		if input != nil {
			lines = append(lines, structsOf(reflect.TypeOf(input))...)
		}
	}
	slices.Sort(lines)
	return object.Digest([]byte(strings.Join(slices.Compact(lines), "\n")))[:typesLength]
}

// typesIn returns the digest of the types in a digest of inputs, empty if there is none.
func typesIn(digest string) string {
	form, _, found := strings.Cut(digest, typesEnd)
	if !found {
		return ""
	}
	return form
}

// structsOf describes all structs that values of a type can have.
func structsOf(of reflect.Type) []string {
	if known, found := structsByType.Load(of); found {
		if lines, ok := known.([]string); ok {
			return lines
		}
	}
	found := map[reflect.Type]string{}
	describe(of, found)
	lines := make([]string, 0, len(found))
	for _, line := range found {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	structsByType.Store(of, lines)
	return lines
}

func describe(of reflect.Type, found map[reflect.Type]string) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		describe(of.Elem(), found)
	case reflect.Struct:
		if _, known := found[of]; known {
			return
		}
		found[of] = ""
		var line strings.Builder
		line.WriteString(of.String())
		for field := range of.Fields() {
			if field.IsExported() {
				line.WriteString(" " + field.Name + " " + field.Type.String() + " " + field.Tag.Get("json"))
				describe(field.Type, found)
			}
		}
		found[of] = line.String()
	}
}
