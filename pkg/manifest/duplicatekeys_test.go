package manifest

import (
	"slices"
	"testing"
)

// TestDuplicateKeys finds keys that occur twice in a mapping. The last one counts.
func TestDuplicateKeys(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		value   any
		want    []string
	}{
		"none":                   {"a: 1\nb: {a: 2}\n", int64(1), nil},
		"at the top":             {"a: 1\nb: 2\na: 3\n", int64(3), []string{"a, line 3"}},
		"in a list":              {"b:\n- {c: 1}\n- c: 1\n  c: 2\na: 4\n", int64(4), []string{"b[1].c, line 4"}},
		"three times":            {"a: 1\na: 2\na: 3\n", int64(3), []string{"a, line 2", "a, line 3"}},
		"in an anchor":           {"b: &x {c: 1, c: 2}\na: 1\nd: *x\n", int64(1), []string{"b.c, line 1"}},
		"a merge is overridden":  {"b: &x {c: 1}\nd:\n  <<: *x\n  c: 2\na: 1\n", int64(1), nil},
		"two merges":             {"b: &x {c: 1}\nd:\n  <<: *x\n  <<: *x\na: 1\n", int64(1), nil},
		"in JSON":                {`{"a": 1, "b": {"c": 1, "c": 2}, "a": 5}`, int64(5), []string{"b.c", "a"}},
		"in JSON, other letters": {`{"a": 1, "A": 2}`, int64(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func() (any, []string, error) { return parseYAML([]byte(test.content), 1<<20, 100) }
			if test.content[0] == '{' {
				parse = func() (any, []string, error) { return parseJSON([]byte(test.content)) }
			}
			value, got, err := parse()
			if object, _ := value.(map[string]any); err != nil || object["a"] != test.value || !slices.Equal(got, test.want) {
				t.Errorf("got %v, %q, %v, want %v, %q", value, got, err, test.value, test.want)
			}
		})
	}
}
