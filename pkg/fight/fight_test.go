package fight

import (
	"slices"
	"testing"
	"time"
)

// TestDetector checks the delays for an object that is changed again immediately after each correction.
func TestDetector(t *testing.T) {
	const tolerated = 0
	fights, object := New[string](), "x"
	now := time.Unix(1_000_000, 0)
	for i, want := range []time.Duration{
		tolerated, tolerated, tolerated, tolerated, tolerated,
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second,
		128 * time.Second, 256 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		begins := fights.Observe(object, "d", "other", now)
		known := fights.Of(object, now)
		if delay := known.Resumes().Sub(now); delay != want || fights.Wait(object, "d", now) != want {
			t.Errorf("correction %d: the next one is delayed by %s, or waits for %s, want %s", i+1, delay, fights.Wait(object, "d", now), want)
		}
		if wait := fights.Wait(object, "another", now); wait != 0 {
			t.Errorf("correction %d: another content waits for %s", i+1, wait)
		}
		if first := i == Tolerance; begins != first {
			t.Errorf("correction %d begins a fight: %v", i+1, begins)
		}
		if active := i >= Tolerance; known.Active() != active || fights.Count(now) == 1 != active {
			t.Errorf("correction %d: active %v, counted %d", i+1, known.Active(), fights.Count(now))
		}
		now = known.Resumes()
	}
	// The number of doublings must not overflow, however long the fight continues.
	for range 100 {
		fights.Observe(object, "d", "other", now)
	}
	if wait := fights.Wait(object, "d", now); wait != maxDelay {
		t.Errorf("after 117 corrections the next one waits for %s", wait)
	}
	if fights.Observe(object, "another", "other", now); fights.Of(object, now).Active() {
		t.Error("corrections to another content count")
	}
	if fights.Forget(object); fights.Of(object, now).corrections != 0 {
		t.Error("corrections of an object count after it was created again")
	}
}

// TestRareCorrectionsAreNoFight checks that five corrections within ten minutes are tolerated, no matter for how long. A sixth
// correction within ten minutes begins a fight.
func TestRareCorrectionsAreNoFight(t *testing.T) {
	fights, object := New[string](), "x"
	now := time.Unix(1e9, 0)
	for i := range 100 {
		if now = now.Add(Memory/Tolerance + time.Second); fights.Observe(object, "", "other", now) || fights.Of(object, now).Active() {
			t.Fatalf("correction %d begins a fight", i+1)
		}
	}
	if got := len(fights.Of(object, now).recent); got > Tolerance {
		t.Errorf("%d corrections are remembered", got)
	}
	if !fights.Observe(object, "", "other", now.Add(time.Second)) || fights.Of(object, now.Add(time.Second)).recent != nil {
		t.Error("a sixth correction within ten minutes does not begin a fight")
	}
}

// TestFightsEnd checks that a fight ends exactly Memory after the last correction.
func TestFightsEnd(t *testing.T) {
	fights, object := New[string](), "x"
	start := time.Unix(1_000_000, 0)
	for range Tolerance + 1 {
		fights.Observe(object, "", "other", start)
	}
	last := start.Add(Memory)
	if !fights.Of(object, last).Active() || fights.Count(last) != 1 {
		t.Error("the fight ends too early")
	}
	if end := fights.Of(object, last).Ends(); fights.Count(end) != 0 {
		t.Error("Count includes a fight that has ended")
	}
	fights.Observe(object, "", "other", start)
	if fights.Observe(object, "", "another", last.Add(time.Second)); fights.Of(object, last.Add(time.Second)).corrections != 1 {
		t.Error("old corrections count")
	}
}

// TestPurge checks that records of objects that are no longer corrected are deleted when other objects are looked up.
func TestPurge(t *testing.T) {
	fights, now := New[int](), time.Unix(1_000_000, 0)
	for object := range 100 {
		fights.Observe(object, "", "other", now)
	}
	if fights.Of(-1, now.Add(Memory)); len(fights.byObject) != 100 {
		t.Errorf("%d objects are remembered at the end of their time", len(fights.byObject))
	}
	if fights.Of(-1, now.Add(2*Memory+time.Nanosecond)); len(fights.byObject) != 0 {
		t.Errorf("%d objects are remembered after their time", len(fights.byObject))
	}
}

// TestManagers checks that each manager of an object is listed once, in sorted order.
func TestManagers(t *testing.T) {
	fights, now := New[string](), time.Unix(1_000_000, 0)
	for _, manager := range []string{"zeta", "", "alpha", "zeta"} {
		fights.Observe("x", "", manager, now)
	}
	if got := fights.Of("x", now).Managers; !slices.Equal(got, []string{"alpha", "zeta"}) {
		t.Errorf("the managers are %v", got)
	}
	if other := fights.Of("y", now); other.corrections != 0 || len(other.Managers) > 0 {
		t.Errorf("another object has %+v", other)
	}
}
