package apply

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestUntypable recognizes errors of server-side apply that an update does not have.
func TestUntypable(t *testing.T) {
	const create = "failed to create typed patch object (default/x; v1, Kind=A): "
	for text, want := range map[string]bool{
		create + ".spec.ips: element 0: associative list without keys has an element that's a map type": true,
		"failed to create typed live object (default/x; v1, Kind=A): .spec.a: expected map, got &{[a]}": true,
		"failed to convert new object (default/x; v1, Kind=A) to smd typed: .spec.ips: element 0":       true,
		create + ".spec.x: field not declared in schema":                                                false,
		create + `.spec.ports: duplicate entries for key [port=1,protocol="TCP"]`:                       false,
		"the server could not find the requested resource":                                              false,
	} {
		if got := untypable(errors.New(text)); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
	if untypable(nil) || !untypable(statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "")) {
		t.Error("an unsupported media type is not recognized, or no error is")
	}
}

// TestWholeBody checks what an update sends: the manifest, with the live metadata, status and preserved fields.
func TestWholeBody(t *testing.T) {
	body, err := object.EncodeBody(map[string]any{
		"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "x", "labels": map[string]any{"a": "new"}},
		"spec": map[string]any{"size": int64(9223372036854775807), "mode": "manual"}, "status": map[string]any{"phase": "wrong"},
	})
	if err != nil {
		t.Fatal(err)
	}
	task := Task{Manifest: object.Manifest{Body: body, Preserve: []fieldowner.Pattern{{"spec", "mode"}, {"spec", "gone"}}}}
	got, err := wholeBody(task, map[string]any{
		"metadata": map[string]any{
			"name": "x", "uid": "u", "resourceVersion": "5", "managedFields": []any{}, "finalizers": []any{"f"},
			"labels": map[string]any{"a": "old", "theirs": "x"},
		},
		"spec": map[string]any{"size": int64(1), "mode": "auto", "added": "x"}, "status": map[string]any{"phase": "Up"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata": {"name": "x", "uid": "u", "finalizers": ["f"], "labels": {"a": "new", "theirs": "x"}, "annotations": {}},
		"apiVersion": "v1", "kind": "A", "spec": {"size": 9223372036854775807, "mode": "auto"}, "status": {"phase": "Up"}}`
	var sent, wanted any
	if err := errors.Join(json.Unmarshal(got, &sent), json.Unmarshal([]byte(want), &wanted)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sent, wanted) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestLarger compares sizes as quantities.
func TestLarger(t *testing.T) {
	claim := func(size any) map[string]any {
		return map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}}
	}
	for _, test := range []struct {
		live, manifest any
		want           bool
	}{
		{"30Gi", "20Gi", true},
		{"20Gi", "20Gi", false},
		{"20Gi", "20480Mi", false},
		{"20Gi", "20G", true},
		{"900Mi", "1Gi", false},
		{"1Ki", int64(1000), true},
		{"30Gi", "large", false},
		{nil, "1Gi", false},
	} {
		if got := larger(claim(test.live), claim(test.manifest)); got != test.want {
			t.Errorf("%v is larger than %v: %t", test.live, test.manifest, got)
		}
	}
}
