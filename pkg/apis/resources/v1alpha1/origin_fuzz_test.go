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
				t.Fatalf("%q is none but gives %+v", text, parsed)
			}
			return
		}
		if strings.Count(text, ":") > 1 {
			return // no value that is ever written
		}
		if parsed.Owner.Namespace == "" || parsed.Owner.Name == "" || strings.ContainsAny(parsed.Owner.Name, ":/") ||
			strings.ContainsAny(parsed.Owner.Namespace, ":/") {
			t.Fatalf("%q gives %+v", text, parsed)
		}
		if again, ok := ParseOrigin(parsed.String()); !ok || again != parsed {
			t.Fatalf("%q gives %+v, which is written as %q and gives %+v", text, parsed, parsed.String(), again)
		}
	})
}
