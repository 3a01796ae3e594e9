package ownership

import (
	"slices"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestDropped(t *testing.T) {
	dropped := NewDeleted()
	gone := []object.Key{{Kind: "ConfigMap", Namespace: "a", Name: "gone"}}
	dropped.Add(shop, "1", gone)
	dropped.Add(shop, "1", gone) // the stored inventory is unchanged
	if got := dropped.Keys(shop, "1"); !slices.Equal(got, gone) {
		t.Errorf("got %v", got)
	}
	if got := dropped.Keys(shop, "2"); len(got) > 0 {
		t.Errorf("for a recreated ManagedResource, got %v", got)
	}
	if !dropped.Has(shop) {
		t.Error("no deleted object is recorded")
	}
	dropped.Forget(shop)
	if got := dropped.Keys(shop, "1"); len(got) > 0 || len(dropped.byOwner) > 0 {
		t.Errorf("after Forget, got %v", got)
	}
}
