package ownership

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestSupersededDoubts(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	s := NewStaleReads(now)
	if s.Doubts(shop) {
		t.Error("there is doubt before any write")
	}
	s.Doubt(shop, "7")
	if !s.Doubts(shop) || s.Has(shop, "7") {
		t.Error("a write of which nobody knows is not in doubt, or is taken as done")
	}
	s.Settle(shop, "7")
	if s.Doubts(shop) || s.Has(shop, "7") {
		t.Error("the write was not carried out, and is in doubt, or taken as done")
	}
	s.Doubt(shop, "7")
	s.Settle(shop, "8")
	if s.Doubts(shop) || !s.Has(shop, "7") {
		t.Error("the write was carried out, and is in doubt, or not taken as done")
	}
	now.Step(cacheLag - 1)
	if !s.Has(shop, "7") || s.Doubts(shop) {
		t.Error("a cache that is behind is not waited for")
	}
	now.Step(1)
	if s.Has(shop, "7") || !s.Doubts(shop) {
		t.Error("a cache is waited for that has gone back to an old state")
	}
	s.Settle(shop, "7")
	if s.Has(shop, "7") || s.Doubts(shop) {
		t.Error("the old state is the present one, and is in doubt, or not worked on")
	}
	s.Doubt(shop, "8")
	if s.Forget(shop); s.Doubts(shop) {
		t.Error("what is gone is in doubt")
	}
}
