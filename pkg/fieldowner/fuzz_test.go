package fieldowner

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// FuzzFieldFilter checks that every field that is owned according to the API server's own library, and every parent of it, may
// be owned according to the filter.
func FuzzFieldFilter(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"f:data":{"f:a":{}}}`, `{"f:spec":{".":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:x":{}}}}}`, `{"f:a\"b":{"f:\u003c/":{}}}`,
		"{\"f:\xff\":{}}", `{"f:a":{}} `, `{"v:1":{},"i:0":{}}`, strings.Repeat(`{"f:a":`, 2000) + "{}" + strings.Repeat("}", 2000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		filter := FieldFilterOf(fields)
		set := &fieldpath.Set{}
		if set.FromJSON(strings.NewReader(string(fields))) != nil {
			return
		}
		for path := range set.All() {
			var pattern Pattern
			for _, element := range path {
				if element.FieldName == nil {
					break
				}
				pattern = append(pattern, *element.FieldName)
			}
			if len(pattern) > 0 && !filter.MayHave(pattern) {
				t.Fatalf("%s is owned, but MayHave(%q) is false: %s", path, []string(pattern), fields)
			}
		}
	})
}

// TestDeepFieldsEnd checks that extremely deep nesting, which no API server produces, does not exhaust the stack.
func TestDeepFieldsEnd(t *testing.T) {
	if FieldFilterOf([]byte(strings.Repeat(`{"f:a":`, 5_000_000))) != matchesAll {
		t.Error("the content of too deep fields counts as known")
	}
	entries := []metav1.ManagedFieldsEntry{entryOf("resource-manager", apply, "", `{}`), entryOf("helm", update, "", strings.Repeat(`{"f:a":`, 5_000_000))}
	if _, err := TakeOverCandidates(entries, DefaultPolicy(), nil); err == nil || !strings.Contains(err.Error(), "deeper than 1000 levels") {
		t.Errorf("the error is %v", err)
	}
	if FieldFilterOf([]byte(strings.Repeat(`{"f:a":`, 900)+"{}"+strings.Repeat("}", 900))) == matchesAll {
		t.Error("the content of the fields is not known")
	}
}
