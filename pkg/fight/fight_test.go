package fight

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestDetector: a few corrections are made at once, further ones ever more slowly, until nothing was corrected for a while.
func TestDetector(t *testing.T) {
	b := New()
	object, other := types.NamespacedName{Namespace: "a", Name: "one"}, types.NamespacedName{Namespace: "a", Name: "two"}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range tolerance {
		if wait := b.Wait(object, "x", now); wait != 0 {
			t.Errorf("correction %d waits for %s", i, wait)
		}
		b.Observe(object, "x", now)
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if wait := b.Wait(object, "x", now); wait != want {
			t.Errorf("waits for %s, not %s", wait, want)
		}
		if wait := b.Wait(object, "y", now); wait != 0 {
			t.Errorf("something else waits for %s", wait)
		}
		now = now.Add(want)
		if wait := b.Wait(object, "x", now); wait != 0 {
			t.Errorf("still waits for %s", wait)
		}
		b.Observe(object, "x", now)
	}
	for range 100 {
		b.Observe(object, "x", now)
	}
	if wait := b.Wait(object, "x", now); wait != maxDelay {
		t.Errorf("waits for %s", wait)
	}
	b.Observe(other, "", now)
	if b.Forget(other); b.byObject[other].count != 0 {
		t.Error("an object that is created counts as contested")
	}
	now = now.Add(memory + 1)
	if wait := b.Wait(object, "x", now); wait != 0 {
		t.Errorf("after a long time it waits for %s", wait)
	}
	b.Observe(types.NamespacedName{Name: "other"}, "x", now)
	if len(b.byObject) != 1 {
		t.Errorf("memory is held for nothing: %v", b.byObject)
	}
}
