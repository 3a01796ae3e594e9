package fieldowner

import (
	"slices"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// TestPathsBeyond names fields that others added, without values.
func TestPathsBeyond(t *testing.T) {
	secret := value.NewValueInterface("a value")
	set := fieldpath.NewSet(
		fieldpath.MakePathOrDie("data", "b"), fieldpath.MakePathOrDie("data", "a"), fieldpath.MakePathOrDie("spec", "replicas"),
		fieldpath.MakePathOrDie("spec", "list", secret), fieldpath.MakePathOrDie("spec", "list", value.NewValueInterface("another")),
	)
	patterns := []Pattern{{"spec", "replicas"}}
	if got, want := PathsBeyond(set, patterns), []string{"data.a", "data.b", "spec.list"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := PathsBeyond(set, nil), []string{"data.a", "data.b", "spec.replicas", "…"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := PathsBeyond(nil, nil); got != nil {
		t.Errorf("without fields: %q", got)
	}
}
