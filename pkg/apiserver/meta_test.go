package apiserver

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// TestFirstFields compares what is found in objects with what the default implementation finds.
func TestFirstFields(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"of a client":     `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"one"}}`,
		"stored":          `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","spec":{"kind":"no","apiVersion":"no/no"}}`,
		"after others":    ` { "metadata" : {"kind":"no","list":[{"apiVersion":"no"}]}, "list":[1,null,"}"], "kind":"Shoot","apiVersion":"v1"}`,
		"escaped":         `{"\u006bind":"Sh\u006fot","apiVersion":"v1"}`,
		"no kind":         `{"apiVersion":"v1","spec":{"kind":"no"}}`,
		"no version":      `{"kind":"Shoot"}`,
		"other letters":   `{"Kind":"Shoot","APIVersion":"v1"}`,
		"empty fields":    `{"kind":"","apiVersion":""}`,
		"null":            `{"kind":null,"apiVersion":"v1"}`,
		"number":          `{"kind":7,"apiVersion":"v1"}`,
		"empty":           `{}`,
		"nothing":         ``,
		"list":            `[{"kind":"Shoot","apiVersion":"v1"}]`,
		"text":            `"kind"`,
		"not JSON":        `kind: Shoot`,
		"cut off":         `{"metadata":{"name":"o`,
		"cut off in kind": `{"apiVersion":"v1","kind":"Sh`,
		"two slashes":     `{"kind":"Shoot","apiVersion":"a/b/c"}`,
	} {
		t.Run(name, func(t *testing.T) {
			want, wantErr := json.DefaultMetaFactory.Interpret([]byte(text))
			got, err := firstFields{}.Interpret([]byte(text))
			if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Errorf("got %v, %v, want %v, %v", got, err, want, wantErr)
			}
		})
	}
	// What is invalid after both fields is found when the object is decoded.
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		if _, _, err := newJSON(scheme, strict).Decode([]byte(`{"kind":"Seed","apiVersion":"core.gardener.cloud/v1beta1","spec":`), nil, nil); err == nil || !strings.Contains(err.Error(), "unexpected end of JSON") {
			t.Errorf("strict %t: the error of an object that is cut off is %v", strict, err)
		}
	}
}
