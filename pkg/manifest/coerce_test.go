package manifest

import (
	"strings"
	"testing"
)

// TestScalarsInMetadata checks that scalars of other YAML types in labels and annotations become strings, and that this is
// reported.
func TestScalarsInMetadata(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", "no": "false", "1": "1", "-7": "-7", "1.5": "1.5", "1e3": "1000", "1.0": "1", "9007199254740993": "9007199254740993",
		"~": "", "'1'": "1", "x": "x",
	} {
		for _, field := range []string{"labels", "annotations"} {
			documents, problems := decodeText("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, " + field + ": {key: " + text + ", other: x}}")
			result := Render(documents, testScopes(), nil, testMarks(nil))
			if len(problems)+len(result.Errors) > 0 {
				t.Fatalf("%s: %v", text, textsOf(append(problems, result.Errors...)))
			}
			if got := fieldOf(t, result.Manifests[0], "metadata", field, "key"); got != want {
				t.Errorf("%s: the body has %#v, want %q", text, got, want)
			}
			changed := text != "~" && text != "'1'" && text != "x"
			if told := len(result.Coerced) == 1 && result.Coerced[0] == `v1/ConfigMap/default/a: metadata.`+field+`["key"]`; told != changed {
				t.Errorf("%s is reported as %q", text, result.Coerced)
			}
		}
	}
}

// TestCoercedAnnotationsCount checks that coerced annotations have an effect, also on objects that get no marks.
func TestCoercedAnnotationsCount(t *testing.T) {
	documents, _ := decodeText("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {key: 1}, annotations: {resources.gardener.cloud/ignore: true}}")
	result := Render(documents, testScopes(), nil, testMarks(nil))
	if len(result.Manifests) != 1 || !result.Manifests[0].Directive.Bare || fieldOf(t, result.Manifests[0], "metadata", "labels", "key") != "1" {
		t.Errorf("%+v, %v", result.Manifests, textsOf(result.Errors))
	}
}

func TestDescribeCoerced(t *testing.T) {
	many := describeCoerced(manifestOf(configMapKind, "default", "a").Ref, strings.Split("a b c d e f g", " "))
	if many != "v1/ConfigMap/default/a: a, b, c, d, e, …" {
		t.Errorf("many are reported as %q", many)
	}
}
