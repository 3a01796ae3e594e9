package object

import (
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefNamesAnObject(t *testing.T) {
	for _, test := range []struct {
		ref       Ref
		text, key string
	}{
		{Ref{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "shop", "x"}, "v1/ConfigMap/shop/x", "ConfigMap shop/x"},
		{Ref{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", "x"}, "v1/Namespace/x", "Namespace x"},
		{Ref{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "shop", "x"}, "apps/v1/Deployment/shop/x", "Deployment.apps shop/x"},
		{Ref{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "", "x"}, "example.com/v1/Widget/x", "Widget.example.com x"},
	} {
		if got := test.ref.String(); got != test.text {
			t.Errorf("got %q, want %q", got, test.text)
		}
		if got := test.ref.Key().String(); got != test.key {
			t.Errorf("got the key %q, want %q", got, test.key)
		}
		if got := test.ref.Key().GroupKind(); got != test.ref.GroupKind() {
			t.Errorf("the key is of kind %v, want %v", got, test.ref.GroupKind())
		}
	}
}

func TestVersionsAreTheSameObject(t *testing.T) {
	ref := Ref{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "shop", "x"}
	old := ref
	old.Version = "v1beta1"
	if ref.Key() != old.Key() {
		t.Errorf("%v and %v have different keys", ref, old)
	}
	for _, change := range []func(*Ref){
		func(r *Ref) { r.Group = "extensions" }, func(r *Ref) { r.Kind = "DaemonSet" },
		func(r *Ref) { r.Namespace = "bank" }, func(r *Ref) { r.Name = "y" },
	} {
		other := ref
		change(&other)
		if ref.Key() == other.Key() {
			t.Errorf("%v and %v have the same key", ref, other)
		}
	}
}

func TestKeysAreOrdered(t *testing.T) {
	sorted := []Key{
		{"", "ConfigMap", "", "z"}, {"", "ConfigMap", "a", "y"}, {"", "ConfigMap", "a", "z"}, {"", "ConfigMap", "b", "a"},
		{"", "Secret", "a", "a"}, {"apps", "ConfigMap", "", "a"}, {"apps", "Deployment", "", ""}, {"batch", "", "", ""},
	}
	for i, a := range sorted {
		for j, b := range sorted {
			got := a.Compare(b)
			if want := i - j; (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("%v compared with %v returns %d", a, b, got)
			}
		}
	}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, Key.Compare)
	if !slices.Equal(shuffled, sorted) {
		t.Errorf("got %v, want %v", shuffled, sorted)
	}
}

func TestDigest(t *testing.T) {
	of := func(parts ...string) string {
		bytes := make([][]byte, 0, len(parts))
		for _, part := range parts {
			bytes = append(bytes, []byte(part))
		}
		return Digest(bytes...)
	}
	seen := map[string][]string{}
	for _, parts := range [][]string{
		nil, {""}, {"", ""}, {"a"}, {"b"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", "b", ""},
		{"abc"}, {"a", "bc"}, {"ab", "c"}, {"a", "b", "c"}, {"v1", `{"f:a":{}}`}, {`v1{"f:a":{}}`},
	} {
		got := of(parts...)
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{11}$`).MatchString(got) {
			t.Errorf("the digest of %q is %q, want 11 characters of URL-safe base64", parts, got)
		}
		if again := of(parts...); again != got {
			t.Errorf("the digest of %q is %q, then %q", parts, got, again)
		}
		if other, collides := seen[got]; collides {
			t.Errorf("%q and %q have the same digest", parts, other)
		}
		seen[got] = parts
	}
}
