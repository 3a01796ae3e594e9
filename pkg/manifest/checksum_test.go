package manifest

import (
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestChecksum(t *testing.T) {
	const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of no data
	if got := Checksum(nil); got != nothing {
		t.Errorf("the checksum of no data is %s", got)
	}
	of := func(contents ...map[string]string) string {
		var secrets []*corev1.Secret
		for _, content := range contents {
			secrets = append(secrets, secretWith(content))
		}
		return Checksum(secrets)
	}
	base := of(map[string]string{"a": "1", "b": "2"})
	if !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(base) {
		t.Errorf("%q is not lower-case hex of a SHA-256", base)
	}
	for range 20 { // the iteration order of maps is random
		if got := of(map[string]string{"b": "2", "a": "1"}); got != base {
			t.Fatalf("the checksum depends on the order of keys: %s, %s", got, base)
		}
	}
	seen := map[string]string{base: "the base"}
	for name, got := range map[string]string{
		"a changed value":             of(map[string]string{"a": "1", "b": "3"}),
		"a changed key":               of(map[string]string{"a": "1", "c": "2"}),
		"swapped values":              of(map[string]string{"a": "2", "b": "1"}),
		"a key less":                  of(map[string]string{"a": "1"}),
		"an empty key more":           of(map[string]string{"a": "1", "b": "2", "c": ""}),
		"a moved boundary":            of(map[string]string{"a": "1b2"}),
		"a boundary of key and value": of(map[string]string{"a1": "", "b": "2"}),
		"a forged boundary":           of(map[string]string{"a": "11:b1:2"}),
		"another Secret":              of(map[string]string{"a": "1", "b": "2"}, map[string]string{"c": "3"}),
		"Secrets in another order":    of(map[string]string{"c": "3"}, map[string]string{"a": "1", "b": "2"}),
	} {
		if other, collides := seen[got]; collides {
			t.Errorf("%s has the same checksum as %s", name, other)
		}
		seen[got] = name
	}
}
