package manifest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestValuesAreBounded checks that a short text that expands to a great number of values is refused before it is parsed, in any
// format.
func TestValuesAreBounded(t *testing.T) {
	limits := testLimits()
	for name, text := range map[string]string{
		"lists in JSON": "[" + strings.Repeat("[],", 60_000) + "[]]", "lists in YAML": strings.Repeat("- [,]\n", 60_000), "fields": strings.Repeat("a: b\n", 60_000),
		"lines": strings.Repeat("-\n", 60_000), "flow": "{a: [" + strings.Repeat(",", 120_000) + "]}", "keys": strings.Repeat("? a\n", 60_000),
	} {
		for _, key := range []string{"a.yaml", "a.yaml.br"} {
			value := text
			if strings.HasSuffix(key, compressedSuffix) {
				value = compress(t, []byte(text))
			}
			documents, problems := decodeSecret(secretWith(map[string]string{key: value, "b": configMap("beside")}), limits)
			if len(documents) != 1 || len(problems) != 1 {
				t.Fatalf("%s in %s: %d objects, problems %v", name, key, len(documents), textsOf(problems))
			}
			expectContains(t, problems[0].Error(), key, "more than 100000 fields, items and lines", "split them")
		}
	}
	if documents, problems := decodeText(strings.Repeat(configMap("a")+"---\n", 90)); len(documents) != 90 || len(problems) > 0 {
		t.Errorf("of 90 objects %d are read, problems %v", len(documents), textsOf(problems))
	}
}

// TestDefaultLimitsAreWide checks that the manifests of as many objects as an inventory can hold are far below the limits.
func TestDefaultLimitsAreWide(t *testing.T) {
	deployment := configMap("a") + strings.Repeat("  a: {b: [c, d], e: 'f: g'}\n", 20)
	if most := DefaultLimits().Values / valuesIn([]byte(deployment)); most < 10_000 {
		t.Errorf("there is room for %d objects of that kind", most)
	}
}

// TestSecretsOfOneManagedResourceAreBounded checks that the decoded data of a ManagedResource is limited, also if it has many
// Secrets or the same one repeatedly.
func TestSecretsOfOneManagedResourceAreBounded(t *testing.T) {
	limits := Limits{Bytes: 1000, Documents: 10, Depth: 20, Values: 1000}
	for name, test := range map[string]struct {
		secret *corev1.Secret
		fit    int // the first Secret above the limit is read, too
	}{
		"small":             {secretWith(map[string]string{"a": configMap("a")}), 41},
		"large":             {secretWith(map[string]string{"a": configMap("a") + strings.Repeat(" ", 900)}), 5},
		"many documents":    {secretWith(map[string]string{"a": strings.Repeat("--- {}\n", 9)}), 5},
		"many values":       {secretWith(map[string]string{"a": "#" + strings.Repeat(",", 900)}), 5},
		"too large":         {secretWith(map[string]string{"a": strings.Repeat("x", 2000)}), 3},
		"a bomb of nothing": {secretWith(map[string]string{"a.br": compress(t, make([]byte, 1<<20))}), 4},
	} {
		budget, read := NewBudget(limits), 0
		var last []error
		for range 50 {
			_, problems := budget.Decode(test.secret)
			if slices.ContainsFunc(problems, func(err error) bool { return strings.Contains(err.Error(), "is skipped: the previous Secrets") }) {
				last = problems
				break
			}
			read++
		}
		if read != test.fit || len(last) != 1 {
			t.Errorf("%s: %d Secrets are read, want %d, then %v", name, read, test.fit, textsOf(last))
		}
	}
}
