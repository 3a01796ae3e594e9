package flow

import "testing"

// TestFormOfInputs checks that the form depends on the types of the inputs, and not on their values.
func TestFormOfInputs(t *testing.T) {
	type spec struct {
		Name string `json:"name"`
		Next []*spec
	}
	type renamed struct {
		Name string `json:"title"`
		Next []*spec
	}
	type more struct {
		Name  string `json:"name"`
		Next  []*spec
		Added *int
	}
	type outer[T any] struct{ Spec map[string]T }
	form := func(inputs ...any) string {
		digest, err := InputsDigest(inputs...)
		if err != nil {
			t.Fatal(err)
		}
		return typesIn(digest)
	}
	first := form("a", outer[spec]{}, true)
	for name, test := range map[string]struct {
		inputs []any
		same   bool
	}{
		"other values":        {[]any{"b", outer[spec]{Spec: map[string]spec{"a": {Name: "b"}}}, false}, true},
		"more texts":          {[]any{"b", "c", outer[spec]{}, nil}, true},
		"a field was added":   {[]any{"a", outer[more]{}, true}, false},
		"a field was renamed": {[]any{"a", outer[renamed]{}, true}, false},
	} {
		if got := form(test.inputs...); (got == first) != test.same || len(got) != typesLength {
			t.Errorf("%s: form %q, but the others have %q", name, got, first)
		}
	}
	if got := typesIn("0123abcd"); got != "" {
		t.Errorf("a digest of an older version has the form %q", got)
	}
}

// TestInputsOfAnotherFormAreHeld checks that inputs do not count as changed if a new version of the program reads them in
// another form.
func TestInputsOfAnotherFormAreHeld(t *testing.T) {
	last := emission{number: 1, digest: "f1-a", version: "v1"}
	for name, test := range map[string]struct {
		inputs, version string
		held            bool
	}{
		"only the program has changed":             {"f1-a", "v2", true},
		"a user has changed the inputs":            {"f1-b", "v2", false},
		"another form":                             {"f2-c", "v2", true},
		"another form, but the same version":       {"f2-c", "v1", false},
		"the same version":                         {"f1-b", "v1", false},
		"a flow that does not say what it reads":   {"", "v2", false},
		"a digest of a version that had no form":   {"a", "v2", true},
		"the same version, nothing has changed":    {"f1-a", "v1", false},
		"another form, and the same inputs though": {"f2-a", "v2", true},
	} {
		if got := last.codeOnly(Plan{Inputs: test.inputs}, test.version); got != test.held {
			t.Errorf("%s: held %t", name, got)
		}
	}
	if (emission{}).codeOnly(Plan{Inputs: "f1-a"}, "v1") {
		t.Error("an owner without any emission is held")
	}
}
