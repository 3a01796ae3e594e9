package seed

import (
	"slices"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// operated are the parts that the garden operator deploys in a seed that is the garden.
var operated = []string{
	definitionsManagedResources, definitionsEtcd, definitionsAutoscaling, bundleResourceManager, bundleAutoscaler, bundleEtcdOperator,
}

// upAndRunning returns the inputs of a Seed whose bundles exist.
func upAndRunning(t *testing.T) Inputs {
	t.Helper()
	in := known(t, func(*Inputs) {})
	for _, bundle := range planOf(t, in).Bundles {
		in.Emitted = append(in.Emitted, bundle.Key)
	}
	return in
}

// TestSeedBecomesTheGarden checks that gardenlet hands over what the garden operator deploys, and deletes nothing of it.
// If the garden is deleted, gardenlet plans the same parts again, and adopts them.
func TestSeedBecomesTheGarden(t *testing.T) {
	before := planOf(t, upAndRunning(t))
	in := upAndRunning(t)
	in.IsGarden = true
	plan := planOf(t, in)
	for _, name := range operated {
		key := in.key(name)
		if !slices.ContainsFunc(before.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key }) {
			t.Errorf("a seed has no part %s", name)
		}
		if !slices.ContainsFunc(plan.Tombstones, func(t flow.Tombstone) bool { return t.Key == key && t.Release == flow.ReleaseBundle }) {
			t.Errorf("%s is not released", name)
		}
	}
	for _, tombstone := range plan.Tombstones {
		if tombstone.Release == "" {
			t.Errorf("%s is deleted", tombstone.Key)
		}
	}
	in = upAndRunning(t) // the garden is deleted, and the seed stays
	for _, name := range operated {
		in.Emitted = slices.DeleteFunc(in.Emitted, func(key flow.Key) bool { return key == in.key(name) })
	}
	if after := planOf(t, in); !slices.EqualFunc(after.Bundles, before.Bundles, func(a, b flow.Bundle) bool { return a.Key == b.Key }) {
		t.Error("the parts are not planned again")
	}
}

// TestPartsThatOthersManageAreKept checks that a part that the Seed had, and does not have any more, stays without
// keeping the Seed in progress.
func TestPartsThatOthersManageAreKept(t *testing.T) {
	in := upAndRunning(t)
	in.IdentityOrigin = "garden"
	plan := planOf(t, in)
	if !slices.Contains(plan.Keeps, in.key(bundleIdentity)) {
		t.Errorf("kept %v", plan.Keeps)
	}
	if slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool { return slices.Contains(wait.Holds, in.key(bundleIdentity)) }) {
		t.Errorf("waits %v", plan.Waits)
	}
}
