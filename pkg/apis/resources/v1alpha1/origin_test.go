package v1alpha1

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestOrigin(t *testing.T) {
	shop := types.NamespacedName{Namespace: "garden", Name: "shop"}
	for text, want := range map[string]Origin{
		"garden/shop":        {Owner: shop},
		"seed-1:garden/shop": {ClusterID: "seed-1", Owner: shop},
		"a/b:garden/shop":    {ClusterID: "a/b", Owner: shop},
	} {
		got, ok := ParseOrigin(text)
		if !ok || got != want {
			t.Errorf("ParseOrigin(%q) = %+v, %v; want %+v", text, got, ok, want)
		}
		if got.String() != text {
			t.Errorf("%q becomes %q", text, got.String())
		}
	}
	if got, ok := ParseOrigin(":garden/shop"); !ok || got.String() != "garden/shop" {
		t.Errorf("an empty cluster ID returns %+v, %v; want no origin", got, ok)
	}
	for _, text := range []string{
		"", "/", ":", ":/", "shop", "garden/", "/shop", "garden/shop/x", "garden//shop", "garden/shop:x", "seed:shop",
		"seed:/shop", "seed:garden/", "seed:garden/shop/x", "garden/shop:",
	} {
		if got, ok := ParseOrigin(text); ok {
			t.Errorf("ParseOrigin(%q) = %+v, want no origin", text, got)
		}
	}
}
