package ownership

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestSupersededDoubts(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	s := NewStaleReads(now)
	if s.Uncertain(shop) {
		t.Error("there is doubt before any write")
	}
	s.MarkUncertain(shop, "7")
	if !s.Uncertain(shop) || s.Has(shop, "7") {
		t.Error("a write of which nobody knows is not in doubt, or is taken as done")
	}
	s.Resolve(shop, "7")
	if s.Uncertain(shop) || s.Has(shop, "7") {
		t.Error("the write was not carried out, and is in doubt, or taken as done")
	}
	s.MarkUncertain(shop, "7")
	s.Resolve(shop, "8")
	if s.Uncertain(shop) || !s.Has(shop, "7") {
		t.Error("the write was carried out, and is in doubt, or not taken as done")
	}
	now.Step(cacheLag - 1)
	if !s.Has(shop, "7") || s.Uncertain(shop) {
		t.Error("a cache that is behind is not waited for")
	}
	now.Step(1)
	if s.Has(shop, "7") || !s.Uncertain(shop) {
		t.Error("a cache is waited for that has gone back to an old state")
	}
	s.Resolve(shop, "7")
	if s.Has(shop, "7") || s.Uncertain(shop) {
		t.Error("the old state is the present one, and is in doubt, or not worked on")
	}
	s.MarkUncertain(shop, "8")
	if s.Forget(shop); s.Uncertain(shop) {
		t.Error("what is gone is in doubt")
	}
}
