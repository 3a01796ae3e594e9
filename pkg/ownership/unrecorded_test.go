package ownership

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestUnrecorded(t *testing.T) {
	one, two := object.Key{Kind: "ConfigMap", Namespace: "a", Name: "one"}, object.Key{Kind: "ConfigMap", Namespace: "a", Name: "two"}
	unrecorded := NewUnrecorded()
	expect := func(when string, wantOne, wantTwo bool) {
		t.Helper()
		if gotOne, gotTwo := unrecorded.Has(shop, one), unrecorded.Has(shop, two); gotOne != wantOne || gotTwo != wantTwo {
			t.Errorf("%s: unrecorded: %t and %t, want %t and %t", when, gotOne, gotTwo, wantOne, wantTwo)
		}
	}
	unrecorded.Add(shop, one)
	expect("another process may have written", true, true)
	unrecorded.Confirm(shop)
	expect("the status was confirmed", false, false)
	unrecorded.Add(shop, one)
	expect("one was written", true, false)
	unrecorded.Confirm(shop)
	expect("a confirmation does not record the write", true, false)
	unrecorded.Record(shop, []object.Key{two})
	expect("the status was stored, and the write of two failed", false, true)
	unrecorded.Record(shop, nil)
	expect("the status was stored", false, false)
	unrecorded.Forget(shop)
	expect("the ManagedResource was deleted", true, true)
}
