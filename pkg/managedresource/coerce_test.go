package managedresource

import (
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestScalarsInMetadata: YAML has more types than labels and annotations, and none of them is meant.
func TestScalarsInMetadata(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", "no": "false", "1": "1", "-7": "-7", "1.5": "1.5", "1e3": "1000", "1.0": "1", "9007199254740993": "9007199254740993",
		"~": "", "'1'": "1", "x": "x",
	} {
		for _, field := range []string{"labels", "annotations"} {
			documents, problems := decodeText("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, " + field + ": {key: " + text + ", other: x}}")
			result := render(documents, testScopes(), nil, testMarks(nil))
			if len(problems)+len(result.problems) > 0 {
				t.Fatalf("%s: %v", text, textsOf(append(problems, result.problems...)))
			}
			if got := fieldOf(t, result.manifests[0], "metadata", field, "key"); got != want {
				t.Errorf("%s: the body has %#v, want %q", text, got, want)
			}
			changed := text != "~" && text != "'1'" && text != "x"
			if told := len(result.coerced) == 1 && result.coerced[0] == `v1/ConfigMap/default/a: metadata.`+field+`["key"]`; told != changed {
				t.Errorf("%s is told as %q", text, result.coerced)
			}
		}
	}
}

// TestCoercedAnnotationsCount: those that ask for something, and of objects that get no marks.
func TestCoercedAnnotationsCount(t *testing.T) {
	documents, _ := decodeText("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {key: 1}, annotations: {resources.gardener.cloud/ignore: true}}")
	result := render(documents, testScopes(), nil, testMarks(nil))
	if len(result.manifests) != 1 || !result.manifests[0].Directive.Bare || fieldOf(t, result.manifests[0], "metadata", "labels", "key") != "1" {
		t.Errorf("%+v, %v", result.manifests, textsOf(result.problems))
	}
}

func TestCoercedIsTold(t *testing.T) {
	tally := tallyOf(nil, nil)
	tally.coerced = []string{"v1/ConfigMap/default/a: metadata.labels[\"key\"]"}
	got := tally.verdict()
	if got.status != resourcesv1alpha1.ConditionTrue || got.reason != resourcesv1alpha1.ReasonApplySucceeded {
		t.Errorf("%+v", got)
	}
	expectContains(t, got.message, `Converted to strings; quote them in the manifests (1): v1/ConfigMap/default/a: metadata.labels["key"]`)
	many := describeCoerced(manifestOf(configMapKind, "default", "a").Ref, strings.Split("a b c d e f g", " "))
	if many != "v1/ConfigMap/default/a: a, b, c, d, e, …" {
		t.Errorf("many are told as %q", many)
	}
}
