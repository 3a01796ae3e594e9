package flow

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// formLength is how many characters of a digest stand for the form of inputs.
	formLength = 8
	// formEnd separates the form from the digest of the inputs themselves.
	formEnd = "-"
)

// formsOfTypes has the structs below a type, as text, by the type: they stay the same while the program runs.
var formsOfTypes sync.Map

// formOf returns what identifies the types of inputs, with the names of their fields in JSON. It changes with a version of the program that adds a field,
// in which all owners may have a default: then it is not known whether what was declared has changed, too.
func formOf(inputs []any) string {
	var lines []string
	for _, input := range inputs {
		if input != nil {
			lines = append(lines, structsOf(reflect.TypeOf(input))...)
		}
	}
	slices.Sort(lines)
	return object.Digest([]byte(strings.Join(slices.Compact(lines), "\n")))[:formLength]
}

// formIn returns the form in a digest of inputs; empty if it has none.
func formIn(digest string) string {
	form, _, found := strings.Cut(digest, formEnd)
	if !found {
		return ""
	}
	return form
}

// structsOf describes all structs that values of a type can have.
func structsOf(of reflect.Type) []string {
	if known, found := formsOfTypes.Load(of); found {
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
	formsOfTypes.Store(of, lines)
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
