package v1alpha1

import (
	"strings"
	"testing"
)

func FuzzParseOrigin(f *testing.F) {
	for _, seed := range []string{"", "garden/shop", "seed:garden/shop", ":garden/shop", "a/b:c/d", "a:b", "a/b/c", "//", ":/:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, ok := ParseOrigin(text)
		if !ok {
			if parsed != (Origin{}) {
				t.Fatalf("%q is not an origin but returns %+v", text, parsed)
			}
			return
		}
		if strings.Count(text, ":") > 1 {
			return // never written as an annotation
		}
		if parsed.Owner.Namespace == "" || parsed.Owner.Name == "" || strings.ContainsAny(parsed.Owner.Name, ":/") ||
			strings.ContainsAny(parsed.Owner.Namespace, ":/") {
			t.Fatalf("%q returns %+v", text, parsed)
		}
		if again, ok := ParseOrigin(parsed.String()); !ok || again != parsed {
			t.Fatalf("%q returns %+v, which is written as %q and returns %+v", text, parsed, parsed.String(), again)
		}
	})
}
