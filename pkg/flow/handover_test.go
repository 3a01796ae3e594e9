package flow

import (
	"strings"
	"testing"
)

// TestKeptBundlesStay checks that a bundle that the plan keeps is neither deleted nor a reason to wait.
func TestKeptBundlesStay(t *testing.T) {
	live := emitted(t, Plan{Bundles: []Bundle{bundle("pool-old", "1"), bundle("pool-new", "1")}})
	plan := Plan{Bundles: []Bundle{bundle("pool-new", "1")}, Keeps: []Key{named("pool-old"), named("never-existed")}}
	decision := decide(t, plan, live)
	if len(decision.Steps)+len(decision.Held)+len(decision.Unmentioned)+len(decision.Problems)+len(decision.Pending) > 0 {
		t.Errorf("decision %+v", decision)
	}
	if why, err := Unsettled(owner, plan, live, rules()); err != nil || len(why) > 0 {
		t.Errorf("unsettled %q, error %v", why, err)
	}
	if report := Progress(Operation{}, owner, Result{Plan: plan, Decision: decision, Live: live}, start); report.LastOperation.Progress != 100 {
		t.Errorf("report %+v", report)
	}
	plan.Bundles = append(plan.Bundles, bundle("dependent", "2", "pool-new"))
	if got := steps(decide(t, plan, live)); got != "Create dependent" {
		t.Errorf("steps %q", got)
	}
	live.Secrets = map[Key]bool{}
	if why := decide(t, plan, live).Problems[named("pool-old")]; !strings.Contains(why, "do not exist") {
		t.Errorf("without its Secrets: problem %q", why)
	}
}

// TestKeptBundlesAreNothingElse checks that a plan with two opinions on a bundle is refused. A key that returns is a bundle.
func TestKeptBundlesAreNothingElse(t *testing.T) {
	for name, plan := range map[string]Plan{
		"a bundle and kept":       {Bundles: []Bundle{bundle("pool", "1")}, Keeps: []Key{named("pool")}},
		"a tombstone and kept":    {Tombstones: tombstones("pool"), Keeps: []Key{named("pool")}},
		"a bundle and tombstone":  {Bundles: []Bundle{bundle("pool", "1")}, Tombstones: tombstones("pool")},
		"a bundle that goes away": {Bundles: []Bundle{bundle("pool", "1")}, Tombstones: []Tombstone{{Key: named("pool"), Release: ReleaseObjects}}},
	} {
		if err := plan.Validate(); err == nil || !strings.Contains(err.Error(), "pool as ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestReleasedObjectsAreKept checks that a bundle is deleted only after the resource-manager knows that its objects stay.
func TestReleasedObjectsAreKept(t *testing.T) {
	key := named("infrastructure")
	live := emitted(t, Plan{Bundles: []Bundle{bundle("infrastructure", "1"), bundle("worker", "1", "infrastructure")}})
	live.ManagedResources[key].ResourceVersion = "7"
	plan := Plan{Bundles: []Bundle{bundle("worker", "1")}, Tombstones: []Tombstone{{Key: key, Release: ReleaseObjects, Confirm: true}}}
	decision := decide(t, plan, live)
	if got := steps(decision); got != "Update worker, KeepObjects infrastructure" {
		t.Fatalf("steps %q", got) // it is not confirmed, and nothing waits for its dependents
	}
	live = carriedOut(t, live, decision)
	if decision = decide(t, plan, live); len(decision.Steps) > 0 || !strings.Contains(decision.Pending[key], "has observed its generation 2") {
		t.Errorf("steps %q, pending %q", steps(decision), decision.Pending[key])
	}
	ready(live.ManagedResources[key])
	decision = decide(t, plan, live)
	if got := steps(decision); got != "Delete infrastructure" || decision.Steps[0].resourceVersion != "7" || decision.Steps[0].uid == "" {
		t.Fatalf("steps %+v", decision.Steps)
	}
	plan.Tombstones[0].After = []Key{named("worker")}
	if decision = decide(t, plan, live); len(decision.Steps) > 0 || decision.Pending[key] == "" {
		t.Errorf("with an order: steps %q, pending %q", steps(decision), decision.Pending[key])
	}
}

// TestReleasedBundleDeletedByHandKeepsItsObjects checks that a deletion by hand during a release deletes no object.
func TestReleasedBundleDeletedByHandKeepsItsObjects(t *testing.T) {
	for _, release := range []Release{ReleaseObjects, ReleaseBundle} {
		live := emitted(t, Plan{Bundles: []Bundle{bundle("vpa", "1")}})
		deleteAt(live.ManagedResources[named("vpa")])
		plan := Plan{Tombstones: []Tombstone{{Key: named("vpa"), Release: release}}}
		decision := decide(t, plan, live)
		if got := steps(decision); got != "KeepObjects vpa" {
			t.Errorf("%s: steps %q", release, got)
		}
		live = carriedOut(t, live, decision)
		if decision = decide(t, plan, live); len(decision.Steps) > 0 || decision.Pending[named("vpa")] == "" {
			t.Errorf("%s: steps %q, pending %v", release, steps(decision), decision.Pending)
		}
	}
}

// TestReleasedBundlesAreAdopted checks that a bundle moves from one flow to another and back, without a deletion, and that
// no other flow touches it.
func TestReleasedBundlesAreAdopted(t *testing.T) {
	key := named("vpa")
	release := Plan{Tombstones: []Tombstone{{Key: key, Release: ReleaseBundle}}}
	live := emitted(t, Plan{Bundles: []Bundle{bundle("vpa", "1")}})
	if decision := decide(t, Plan{Bundles: []Bundle{bundle("vpa", "1")}}, live); len(decision.Steps) > 0 {
		t.Errorf("steps %q", steps(decision))
	}
	decision := decide(t, release, live)
	if got := steps(decision); got != "HandOver vpa" {
		t.Fatalf("steps %q", got)
	}
	live = carriedOut(t, live, decision)
	if decision = decide(t, release, live); len(decision.Steps)+len(decision.Problems)+len(decision.Pending) > 0 {
		t.Errorf("after the release: %+v", decision)
	}
	if decision = decide(t, Plan{Tombstones: tombstones("vpa")}, live); len(decision.Steps) > 0 {
		t.Errorf("a flow deletes what it does not own: %q", steps(decision))
	}
	if decision = decide(t, Plan{Bundles: []Bundle{bundle("vpa", "1")}, Deleting: true}, live); len(decision.Steps) > 0 {
		t.Errorf("an owner that is being deleted adopts: %q", steps(decision))
	}
	decision = decide(t, Plan{Bundles: []Bundle{bundle("vpa", "1")}}, live)
	if got := steps(decision); got != "Adopt vpa" {
		t.Fatalf("steps %q", got)
	}
	live = carriedOut(t, live, decision)
	if decision = decide(t, Plan{Bundles: []Bundle{bundle("vpa", "1")}}, live); len(decision.Steps)+len(decision.Problems) > 0 {
		t.Errorf("after the adoption: %+v", decision)
	}
}

// TestRepairsSkipTombstones checks that ending the deletion of a bundle that the plan deletes is not a repair.
func TestRepairsSkipTombstones(t *testing.T) {
	decision := Decision{Steps: []Step{{Action: ActionRelease, Key: named("gone")}, {Action: ActionUpdate, Key: named("gone")}}}
	if found := repairs(owner, nothingLive(), decision); len(found) > 0 {
		t.Errorf("repairs %v", found)
	}
}
