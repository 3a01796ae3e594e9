package flow

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestLastGeneration checks that the generation of the last emission is known, whichever bundle it has written, and that a plan without a
// generation records none. The generation alone changes nothing.
func TestLastGeneration(t *testing.T) {
	last := func(live Live) int64 {
		t.Helper()
		var objects []client.Object
		for _, mr := range live.ManagedResources {
			objects = append(objects, mr)
		}
		generation, err := LastGeneration(t.Context(), fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(objects...).Build(), owner)
		if err != nil {
			t.Fatal(err)
		}
		return generation
	}
	plan := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1")}, Inputs: "i1"}
	if generation := last(emitted(t, plan)); generation != 0 {
		t.Errorf("the generation is %d, want none", generation)
	}
	plan.Generation = 12
	live := emitted(t, plan)
	if generation := last(live); generation != 12 {
		t.Errorf("the generation is %d, want 12", generation)
	}
	plan.Generation = 13
	if decision := decide(t, plan, live); len(decision.Steps) > 0 {
		t.Errorf("the generation alone leads to %s", steps(decision))
	}
	// A user declares an earlier state of one bundle. The other one still records the later generation.
	plan.Generation, plan.Inputs, plan.Bundles[1] = 9, "i2", bundle("b", "2")
	live = carriedOut(t, live, decide(t, plan, live))
	if generation := last(live); generation != 9 {
		t.Errorf("the generation is %d, want 9", generation)
	}
}
