package managedresource

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestOriginColon(t *testing.T) {
	if got, ok := resourcesv1alpha1.ParseOrigin("a:b:c/d"); ok {
		t.Errorf("%+v", got)
	}
	self := resourcesv1alpha1.Origin{ClusterID: "a:b", Owner: shop}
	key := manifestOf(configMapKind, "a", "x").Key()
	o := owners{}.ownership()
	o.Self = self
	got := planPrune(pruneInput{
		entries: inventoryWith(entry(configMapKind, "a", "x", "sent.owned")), managedBy: "gardener", ownership: o,
		live: map[object.Key]live.State{key: present(live.Observation{Origin: self.String(), OwnedDigest: "owned"})},
	})[0]
	if got.action != actionDelete {
		t.Errorf("for an object of this ManagedResource: %s, %s", got.action, got.reason)
	}
}

// TestDoubleDeletion deletes two ManagedResources that want the same object, for example together with their namespace. The
// object must be deleted.
func TestDoubleDeletion(t *testing.T) {
	key := manifestOf(configMapKind, "a", "x").Key()
	observation := live.Observation{Origin: "garden/bank", ManagedBy: "gardener", OwnedDigest: "owned"}
	states := map[object.Key]live.State{key: present(observation)}
	entries := inventoryWith(entry(configMapKind, "a", "x", ""))
	ofBank := owners{claiming: []types.NamespacedName{bank, shop}}.ownership()
	ofBank.Self.Owner, ofBank.Successors = bank, func(object.Key, types.NamespacedName) []types.NamespacedName { return nil }
	first := planPrune(pruneInput{entries: entries, live: states, managedBy: "gardener", ownership: ofBank})[0]
	second := planPrune(pruneInput{entries: entries, live: states, managedBy: "gardener", ownership: owners{claiming: []types.NamespacedName{shop}}.ownership()})[0]
	if first.action != actionDelete && second.action != actionDelete {
		t.Errorf("bank: %s (%s), shop: %s (%s): neither deletes it", first.action, first.reason, second.action, second.reason)
	}
}
