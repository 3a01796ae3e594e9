package manifest

import (
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestStatusOnCreation checks that the status of the named objects is sent through the subresource, and that the digest does
// not depend on it.
func TestStatusOnCreation(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\n"
	named := []resourcesv1alpha1.ObjectSelector{{Group: "example.com", Kind: "Widget"}}
	for name, test := range map[string]struct {
		status string
		named  []resourcesv1alpha1.ObjectSelector
		want   string
	}{
		"named":      {"status: {state: {x: 1}}\n", named, `{"metadata":{"name":"a","namespace":"b"},"apiVersion":"example.com/v1","kind":"Widget","status":{"state":{"x":1}}}`},
		"not named":  {"status: {state: {x: 1}}\n", nil, ""},
		"other kind": {"status: {state: {x: 1}}\n", []resourcesv1alpha1.ObjectSelector{{Kind: "Widget"}}, ""},
		"none":       {"", named, ""},
		"null":       {"status: null\n", named, ""},
		"empty":      {"status: {}\n", named, ""},
	} {
		options := testMarks(nil)
		options.StatusOnCreation = test.named
		manifest := renderOne(t, head+test.status, options)
		if got := string(manifest.Status); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}

	options := testMarks(nil)
	options.StatusOnCreation = named
	if renderOne(t, head+"status: {a: 1}\n", options).Digest != renderOne(t, head+"status: {a: 2}\n", options).Digest {
		t.Error("the status changes the manifest")
	}
	documents, _ := decodeText(head + "status: text\n")
	if rendered := Render(documents, testScopes(), nil, options); len(rendered.Errors) != 1 {
		t.Errorf("for a status that is a string: %v", rendered.Errors)
	} else {
		expectContains(t, rendered.Errors[0].Error(), "its status is not a map")
	}
}
