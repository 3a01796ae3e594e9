package v1alpha1

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzParse searches for input on which Parse panics, and checks that accepted configurations are valid and survive a
// round trip.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(readFile(f, examplePath)))
	f.Add([]byte(laughs()))
	f.Add([]byte("a: &a [*a]"))
	for _, test := range invalidFiles {
		f.Add([]byte(minimal + test.file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if (c == nil) == (err == nil) {
			t.Fatalf("Parse returned %v and %v", c, err)
		}
		if err != nil {
			_ = err.Error()
			return
		}
		if errs := Validate(c); len(errs) > 0 {
			t.Fatalf("Parse accepted an invalid configuration: %v", errs)
		}
		first, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(first) > maxFileBytes {
			return
		}
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("Parse rejected its own output: %v\n%s", err, first)
		}
		if second := toYAML(t, again); second != string(first) {
			t.Fatalf("first:\n%s\nsecond:\n%s", first, second)
		}
	})
}
