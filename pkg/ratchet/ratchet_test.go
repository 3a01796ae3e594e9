package ratchet

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// TestErrors checks which errors of an update remain if the stored object has an error itself.
func TestErrors(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	pool := func(i int) *field.Path { return spec.Child("pools").Index(i).Child("size") }
	bad := func(path *field.Path, value any) *field.Error { return field.Invalid(path, value, "is bad") }
	for name, test := range map[string]struct {
		updated, stored string
		found, had      *field.Error
		remains         bool
	}{
		"unchanged": {"{spec: {a: x, b: 2}}", "{spec: {a: x, b: 1}}", bad(spec.Child("a"), "x"), bad(spec.Child("a"), "x"), false},
		"changed":   {"{spec: {a: y}}", "{spec: {a: x}}", bad(spec.Child("a"), "y"), bad(spec.Child("a"), "x"), true},
		"changed, and the error does not tell": {
			"{spec: {a: y}}", "{spec: {a: x}}", bad(spec.Child("a"), "(bundle)"), bad(spec.Child("a"), "(bundle)"), true,
		},
		"another rule": {
			"{spec: {a: x}}", "{spec: {a: x}}", field.Invalid(spec.Child("a"), "x", "is worse"), bad(spec.Child("a"), "x"), true,
		},
		"another type": {"{spec: {a: x}}", "{spec: {a: x}}", field.Forbidden(spec.Child("a"), "is bad"), bad(spec.Child("a"), "x"), true},
		"still missing": {
			"{spec: {b: 2}}", "{spec: {b: 1}}", field.Required(spec.Child("a"), ""), field.Required(spec.Child("a"), ""), false,
		},
		"removed": {"{spec: {}}", "{spec: {a: x}}", field.Required(spec.Child("a"), ""), bad(spec.Child("a"), "x"), true},
		"item moved": {
			"{spec: {pools: [{name: b, size: 1}, {name: a, size: -1}]}}", "{spec: {pools: [{name: a, size: -1}]}}", bad(pool(1), -1), bad(pool(0), -1), false,
		},
		"item before it removed": {
			"{spec: {pools: [{name: a, size: -1}]}}", "{spec: {pools: [{name: b, size: 1}, {name: a, size: -1}]}}", bad(pool(0), -1), bad(pool(1), -1), false,
		},
		"item replaced": {
			"{spec: {pools: [{name: b, size: -1}]}}", "{spec: {pools: [{name: a, size: -1}]}}", bad(pool(0), -1), bad(pool(0), -1), true,
		},
		"item without identity": {
			"{spec: {pools: [{size: -1, label: a}]}}", "{spec: {pools: [{size: -1}]}}", bad(pool(0), -1), bad(pool(0), -1), true,
		},
		"other field of an item": {
			"{spec: {pools: [{name: a, size: -1, label: b}]}}", "{spec: {pools: [{name: a, size: -1}]}}", bad(pool(0), -1), bad(pool(0), -1), false,
		},
		"plain item moved": {
			"{spec: {list: [y, x]}}", "{spec: {list: [x]}}", bad(spec.Child("list").Index(1), "x"), bad(spec.Child("list").Index(0), "x"), false,
		},
		"key with dots": {
			"{metadata: {annotations: {a.b/c: x}}, spec: {}}", "{metadata: {annotations: {a.b/c: x}}}",
			bad(field.NewPath("metadata", "annotations").Key("a.b/c"), "x"), bad(field.NewPath("metadata", "annotations").Key("a.b/c"), "x"), false,
		},
		"whole object": {"{spec: {a: x}}", "{spec: {a: y}}", bad(spec, "z"), bad(spec, "z"), true},
	} {
		updated, stored := parsed(t, test.updated), parsed(t, test.stored)
		remaining := Errors(updated, stored, field.ErrorList{test.found}, field.ErrorList{test.had})
		if got := len(remaining) > 0; got != test.remains {
			t.Errorf("%s: the error remains: %v, want %v", name, got, test.remains)
		}
	}
}

func parsed(t *testing.T, content string) any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(encoded)
}
