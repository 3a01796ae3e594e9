package managedresource

import (
	"fmt"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestContestsSlowDown goes through the delays of an object that is changed again as soon as it is put back.
func TestContestsSlowDown(t *testing.T) {
	const tolerated = 0
	contests, key := newFights(), object.Key{Kind: "ConfigMap", Name: "x"}
	now := time.Unix(1_000_000, 0)
	for i, want := range []time.Duration{
		tolerated, tolerated, tolerated, tolerated, tolerated,
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second,
		128 * time.Second, 256 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		opened := contests.corrected(key, "other", now)
		known := contests.of(key, now)
		if delay := known.resumes().Sub(now); delay != want {
			t.Errorf("correction %d: the next one is %s later, want %s", i+1, delay, want)
		}
		if first := i == fightTolerance; opened != first {
			t.Errorf("correction %d opens a contest: %v", i+1, opened)
		}
		if open := i >= fightTolerance; known.active() != open || contests.count(now) == 1 != open {
			t.Errorf("correction %d: open %v, counted %d", i+1, known.active(), contests.count(now))
		}
		now = known.resumes()
	}
	// However long it goes on: the number of doublings must not overflow.
	for range 100 {
		contests.corrected(key, "other", now)
	}
	if delay := contests.of(key, now).resumes().Sub(now); delay != 5*time.Minute {
		t.Errorf("after 117 corrections the next one is %s later", delay)
	}
}

// TestRareCorrectionsAreNoContest: five within ten minutes are tolerated, however long that goes on; a sixth one is not.
func TestRareCorrectionsAreNoContest(t *testing.T) {
	contests, key := newFights(), object.Key{Kind: "ConfigMap", Name: "x"}
	now := time.Unix(1e9, 0)
	for i := range 100 {
		if now = now.Add(fightMemory/fightTolerance + time.Second); contests.corrected(key, "other", now) || contests.of(key, now).active() {
			t.Fatalf("correction %d opens a contest", i+1)
		}
	}
	if got := len(contests.of(key, now).recent); got > fightTolerance {
		t.Errorf("%d corrections are remembered", got)
	}
	if !contests.corrected(key, "other", now.Add(time.Second)) || contests.of(key, now.Add(time.Second)).recent != nil {
		t.Error("a sixth correction within ten minutes opens no contest")
	}
}

// TestContestsAreForgotten: neither earlier nor later than fightMemory after the last correction.
func TestContestsAreForgotten(t *testing.T) {
	contests, key := newFights(), object.Key{Kind: "ConfigMap", Name: "x"}
	start := time.Unix(1_000_000, 0)
	for range fightTolerance + 1 {
		contests.corrected(key, "other", start)
	}
	last := start.Add(fightMemory)
	if !contests.of(key, last).active() || contests.count(last) != 1 {
		t.Error("the contest is forgotten too early")
	}
	if contests.count(last.Add(time.Nanosecond)) != 0 {
		t.Error("count does not leave out the contest")
	}
	contests.corrected(key, "other", start)
	if contests.corrected(key, "another", last.Add(time.Second)); contests.of(key, last.Add(time.Second)).corrections != 1 {
		t.Error("corrections of long ago count")
	}
}

// TestContestsNeedNoMetrics: what is remembered of objects that nobody looks at any more goes when others are looked at.
func TestContestsNeedNoMetrics(t *testing.T) {
	contests, now := newFights(), time.Unix(1_000_000, 0)
	for i := range 100 {
		contests.corrected(object.Key{Kind: "ConfigMap", Name: fmt.Sprint(i)}, "other", now)
	}
	other := object.Key{Kind: "ConfigMap", Name: "other"}
	if contests.of(other, now.Add(fightMemory)); len(contests.byObject) != 100 {
		t.Errorf("%d objects are remembered in the end of their time", len(contests.byObject))
	}
	if contests.of(other, now.Add(2*fightMemory+time.Nanosecond)); len(contests.byObject) != 0 {
		t.Errorf("%d objects are remembered after their time", len(contests.byObject))
	}
}

// TestContestsNameManagers: each once, in one order, and nobody else's.
func TestContestsNameManagers(t *testing.T) {
	contests := newFights()
	ref := object.Ref{Namespace: "ns", Name: "x"}
	ref.Version, ref.Kind = "v1", "ConfigMap"
	now := time.Unix(1_000_000, 0)
	for _, manager := range []string{"zeta", "", "alpha", "zeta"} {
		contests.corrected(ref.Key(), manager, now)
	}
	const want = `v1/ConfigMap/ns/x keeps being changed by the field manager "alpha" and "zeta": let one of the two leave the fields alone`
	if got := contests.of(ref.Key(), now).describe(ref); got != want {
		t.Errorf("%s", got)
	}
	if other := contests.of(object.Key{Kind: "ConfigMap", Name: "y"}, now); other.corrections != 0 {
		t.Errorf("another object has %+v", other)
	}
	const nobody = "v1/ConfigMap/ns/x keeps being changed by somebody: let one of the two leave the fields alone"
	if got := (fight{}).describe(ref); got != nobody {
		t.Errorf("%s", got)
	}
}
