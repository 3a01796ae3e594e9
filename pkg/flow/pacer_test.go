package flow

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestFreeSlotsAreGivenInOrder checks that an owner that happens to be reconciled when a slot becomes free does not get it
// if others wait for it, and that a woken owner that is reconciled late does not lose its place.
func TestFreeSlotsAreGivenInOrder(t *testing.T) {
	r := newRollout(t, 4, Pacing{Budget: 2, MaxFailed: 1, Retry: time.Hour})
	for i := range 3 {
		if admitted := r.pass(i, 2); admitted != (i == 0) {
			t.Fatalf("owner %d: admitted %t", i, admitted)
		}
	}
	late := func() { r.clock.SetTime(r.clock.Now().Add(countEvery)) }
	r.finish(0)
	r.show()
	late()
	if r.pass(3, 2) {
		t.Fatal("an owner that did not wait has got the slot of those that do")
	}
	if woken := r.woken(); !slices.Equal(woken, []string{"s1"}) {
		t.Fatalf("woken: %v, want s1", woken)
	}
	if r.pass(2, 2) {
		t.Fatal("the slot of the woken owner was given away at once")
	}
	late() // the woken owner is not reconciled for a while, so that the next one takes the slot
	if !r.pass(2, 2) || r.pass(1, 2) {
		t.Fatal("want only the next owner admitted")
	}
	r.finish(2)
	r.pass(2, 2)
	if woken := r.woken(); !slices.Equal(woken, []string{"s1"}) {
		t.Errorf("woken: %v, want s1, which waits for longest", woken)
	}
}

// TestChangesOfOperatorsArePaced checks that a change of what operators declare for many owners waits for slots with the
// same version of the program, and that only failures with this change stop it.
func TestChangesOfOperatorsArePaced(t *testing.T) {
	last := emission{number: 1, digest: "f1-a", version: "v1/p1"}
	for name, test := range map[string]struct {
		inputs, program, version string
		paced                    bool
	}{
		"operators have changed something":          {"f1-a", "p2", "v1", true},
		"they and a user have":                      {"f1-b", "p2", "v1", false},
		"they have, and the program is another":     {"f1-a", "p2", "v2", true},
		"nothing has changed":                       {"f1-a", "p1", "v1", false},
		"the last program did not say what it read": {"f1-a", "", "v1", true},
	} {
		if got := last.codeOnly(Plan{Inputs: test.inputs, Program: test.program}, test.version); got != test.paced {
			t.Errorf("%s: paced: %t", name, got)
		}
	}
	for name, test := range map[string]struct {
		change     target
		failedWith string
		concerns   bool
	}{
		"with the same change":                       {target{"v1/p1", "v1/p2"}, "v1/p2", true},
		"before the change":                          {target{"v1/p1", "v1/p2"}, "v1/p1", false},
		"with the new program, another declaration":  {target{"v1/p1", "v2/p1"}, "v2/p3", true},
		"with the old program":                       {target{"v1/p1", "v2/p1"}, "v1/p1", false},
		"with the new program, without declarations": {target{"v1", "v2"}, "v2", true},
	} {
		if got := test.change.concerns(test.failedWith); got != test.concerns {
			t.Errorf("a failure %s counts: %t", name, got)
		}
	}
}

// TestFailingOwnersDoNotWaitForTheirOwnSlots checks that failing owners, which use the whole budget, get the version that
// repairs them although an owner that needs slots waits before them.
func TestFailingOwnersDoNotWaitForTheirOwnSlots(t *testing.T) {
	r := newRollout(t, 3, Pacing{Budget: 4, MaxFailed: 3, Retry: time.Hour})
	for i := range 2 {
		for _, mr := range r.lives[r.owner(i).Name].ManagedResources {
			condition(mr, resourcesv1alpha1.ResourcesHealthy, "False", "DeploymentUnhealthy", "no Pod is ready")
		}
	}
	r.show()
	if r.pass(2, 2) {
		t.Fatal("an owner that needs slots is admitted although all are used")
	}
	for i := range 2 {
		if !r.pass(i, 2) {
			t.Errorf("owner %d fails, and waits for the version that repairs it", i)
		}
	}
}

// TestBrokenOwnersDoNotUseTheBudgetForEver checks that owners that fail for long do not keep the others from being changed.
func TestBrokenOwnersDoNotUseTheBudgetForEver(t *testing.T) {
	r := newRollout(t, 3, Pacing{Budget: 2, MaxFailed: 5, Retry: time.Hour})
	if !r.pass(0, 2) {
		t.Fatal("the first owner is not admitted")
	}
	r.finish(0)
	for _, mr := range r.lives[r.owner(0).Name].ManagedResources {
		condition(mr, resourcesv1alpha1.ResourcesHealthy, "False", "DeploymentUnhealthy", "no Pod is ready")
		for i := range mr.Status.Conditions {
			mr.Status.Conditions[i].LastTransitionTime = metav1.NewTime(start)
		}
	}
	for after, want := range map[time.Duration]bool{stuckAfter - time.Second: false, stuckAfter: true} {
		r.restart(r.pacer.Pacing)
		r.show()
		r.clock.SetTime(start.Add(after))
		r.pass(0, 2)
		if admitted := r.pass(1, 0); admitted != want {
			t.Errorf("after %s: admitted %t", after, admitted)
		}
	}
}
