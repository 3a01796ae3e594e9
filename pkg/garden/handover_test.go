package garden

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

// shared are the bundles that both a garden and a seed have.
var shared = []string{bundleManagedKinds, bundleEtcdKinds, bundleAutoscalerKinds, bundleManager, bundleAutoscaler, bundleEtcdOperator}

// TestGardenArrivesAtASeed checks that the operator changes nothing that gardenlet has not handed over, and everything else.
func TestGardenArrivesAtASeed(t *testing.T) {
	before := planOf(t, known(small()))
	in := known(small(), func(in *Inputs) { in.SeedBundles = append([]string{"seed-namespaces", "system"}, shared...) })
	plan := planOf(t, in)
	for _, name := range shared {
		key := in.key(name)
		if !(inventory.Cluster{Garden: true}).IsOperators(name) {
			t.Errorf("gardenlet does not hand over %s", name)
		}
		if !slices.ContainsFunc(before.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key }) {
			t.Errorf("a garden has no part %s", name)
		}
		if slices.ContainsFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key }) ||
			!slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool {
				return slices.Contains(wait.Holds, key) && strings.Contains(wait.Reason, "has not handed over")
			}) {
			t.Errorf("%s is not held", name)
		}
	}
	if held := len(before.Bundles) - len(plan.Bundles); held != len(shared) {
		t.Errorf("%d bundles are held, want %d", held, len(shared))
	}
	if len(plan.Tombstones) > 0 {
		t.Errorf("%v is deleted", plan.Tombstones)
	}
}

// TestGardenLeavesASeed checks that a Garden that is deleted hands over what gardenlet needs, in any order, and deletes the rest.
func TestGardenLeavesASeed(t *testing.T) {
	in := known(small(), func(in *Inputs) {
		in.Emitted = emittedOf(t, known(small()))
		in.Deleting, in.Served, in.Users, in.SeedBundles = true, true, &[]string{}, []string{"system"}
	})
	plan := planOf(t, in)
	for _, tombstone := range plan.Tombstones {
		want := flow.Release("")
		switch {
		case slices.Contains(shared, tombstone.Name):
			want = flow.ReleaseBundle
		case tombstone.Name == bundleSystem:
			want = flow.ReleaseObjects
		}
		if tombstone.Release != want {
			t.Errorf("%s is released as %q, want %q", tombstone.Name, tombstone.Release, want)
		}
	}
	if len(plan.Tombstones) != len(in.Emitted) {
		t.Errorf("%d of %d bundles end", len(plan.Tombstones), len(in.Emitted))
	}
}
