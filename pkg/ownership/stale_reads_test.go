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
		t.Error("uncertain before any write")
	}
	s.MarkUncertain(shop, "7")
	if !s.Uncertain(shop) || s.Has(shop, "7") {
		t.Error("a write with an unknown result is not uncertain, or it counts as done")
	}
	s.Resolve(shop, "7")
	if s.Uncertain(shop) || s.Has(shop, "7") {
		t.Error("the write did not happen, but it is uncertain or counts as done")
	}
	s.MarkUncertain(shop, "7")
	s.Resolve(shop, "8")
	if s.Uncertain(shop) || !s.Has(shop, "7") {
		t.Error("the write happened, but it is uncertain or does not count as done")
	}
	now.Step(cacheLag - 1)
	if !s.Has(shop, "7") || s.Uncertain(shop) {
		t.Error("the read does not wait for the stale cache")
	}
	now.Step(1)
	if s.Has(shop, "7") || !s.Uncertain(shop) {
		t.Error("the read waits for a cache that has returned to an old state")
	}
	s.Resolve(shop, "7")
	if s.Has(shop, "7") || s.Uncertain(shop) {
		t.Error("the old state is the current one, but it is uncertain or still waits for the cache")
	}
	s.MarkUncertain(shop, "8")
	if s.Forget(shop); s.Uncertain(shop) {
		t.Error("a forgotten owner is uncertain")
	}
}
