package flow

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// passHeld makes a pass of version v2 for an owner whose maintenance window is closed. It returns the decision, and the share
// of the owner that the pacer counts.
func passHeld(t *testing.T, plan Plan, live Live) (Decision, share) {
	t.Helper()
	v2 := rules()
	v2.Version = "v2"
	plan.Window = &Window{Opens: start.Add(time.Hour)}
	decision, err := Decide(owner, plan, live, v2)
	if err != nil {
		t.Fatal(err)
	}
	pacer := &Pacer{Pacing: Pacing{Budget: 10, MaxFailed: 3, Retry: time.Minute}, Clock: testingclock.NewFakePassiveClock(start)}
	wait, _, err := pacer.hold(t.Context(), fake.NewClientBuilder().WithScheme(testScheme()).Build(), owner, plan, live, decision, v2.Version)
	if err != nil {
		t.Fatal(err)
	}
	if wait != nil {
		plan.Waits = append(plan.Waits, *wait)
		if decision, err = Decide(owner, plan, live, v2); err != nil {
			t.Fatal(err)
		}
	}
	return decision, pacer.shares[owner.UID]
}

// TestLostWhileHeld checks that lost bundles and manifests are emitted while the rollout of their owner is held, and that the
// rest of the rollout remains held.
func TestLostWhileHeld(t *testing.T) {
	v1 := Plan{Inputs: "same", Bundles: []Bundle{bundle("a", "1"), bundle("b", "1"), bundle("stays", "1")}}
	v2 := Plan{Inputs: "same", Bundles: []Bundle{bundle("a", "2"), bundle("b", "2", "added"), bundle("stays", "1"), bundle("added", "2"), bundle("alone", "2")}}
	without := func(name string) func(Live) {
		return func(live Live) { delete(live.ManagedResources, named(name)) }
	}
	withoutSecret := func(name string) func(Live) {
		return func(live Live) {
			mr := live.ManagedResources[named(name)]
			delete(live.Secrets, Key{Namespace: mr.Namespace, Name: mr.Spec.SecretRefs[0].Name})
		}
	}
	for name, test := range map[string]struct {
		lose  func(Live)
		steps string
		// later are the steps when the rollout of the owner is no longer held.
		later string
	}{
		"nothing":                           {func(Live) {}, "", "Update a, Create added, Create alone, Update b"},
		"a bundle":                          {without("a"), "Create a", "Create added, Create alone, Update b"},
		"a bundle that needs an added one":  {without("b"), "Create added, Create b", "Update a, Create alone"},
		"a bundle that has not changed":     {without("stays"), "Create stays", "Update a, Create added, Create alone, Update b"},
		"manifests":                         {withoutSecret("a"), "Update a", "Create added, Create alone, Update b"},
		"manifests that have not changed":   {withoutSecret("stays"), "Restore stays", "Update a, Create added, Create alone, Update b"},
		"manifests that need an added one":  {withoutSecret("b"), "Create added, Update b", "Update a, Create alone"},
		"the manifests of a bundle and one": {func(live Live) { withoutSecret("stays")(live); without("a")(live) }, "Create a, Restore stays", "Create added, Create alone, Update b"},
	} {
		t.Run(name, func(t *testing.T) {
			live := emitted(t, v1)
			test.lose(live)
			decision, counted := passHeld(t, v2, live)
			if got := steps(decision); got != test.steps {
				t.Fatalf("steps %q, want %q", got, test.steps)
			}
			if len(decision.Problems) > 0 {
				t.Errorf("problems %v", decision.Problems)
			}
			rolling := 0
			for _, step := range decision.Steps {
				if step.Action != ActionRestore {
					rolling++
				}
			}
			if counted.rolling != rolling {
				t.Errorf("%d steps count against the budget, want %d", counted.rolling, rolling)
			}
			live = carriedOut(t, live, decision)
			if again, _ := passHeld(t, v2, live); len(again.Steps) > 0 {
				t.Errorf("the repair releases the rest of the rollout: %q", steps(again))
			}
			later := rules()
			later.Version = "v2"
			if decision, err := Decide(owner, v2, live, later); err != nil || steps(decision) != test.later {
				t.Errorf("when the rollout is no longer held: %q (%v), want %q", steps(decision), err, test.later)
			}
		})
	}
}

// TestOthersAreNotLost checks that a bundle counts as lost only if the last emission included it.
func TestOthersAreNotLost(t *testing.T) {
	v1 := Plan{
		Inputs: "same", Bundles: []Bundle{bundle("a", "1")}, Tombstones: tombstones("deleted"),
		Waits: []Wait{{Name: "w", Holds: []Key{named("held")}}},
	}
	v2 := Plan{Inputs: "same", Bundles: []Bundle{bundle("a", "2"), bundle("held", "2"), bundle("deleted", "2"), bundle("added", "2")}}
	live := emitted(t, v1)
	if decision, _ := passHeld(t, v2, live); steps(decision) != "Create deleted, Create held" {
		t.Errorf("steps %q, want the bundles of v1", steps(decision))
	}
	delete(live.ManagedResources[named("a")].Annotations, AnnotationBundles)
	if decision, _ := passHeld(t, v2, live); len(decision.Steps) > 0 {
		t.Errorf("the bundles of the last emission are not known, but the steps are %q", steps(decision))
	}
	live = emitted(t, v1)
	live.ManagedResources[named("held")] = &resourcesv1alpha1.ManagedResource{Spec: resourcesv1alpha1.ManagedResourceSpec{
		SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: "missing"}},
	}}
	if decision, _ := passHeld(t, v2, live); steps(decision) != "Create deleted" {
		t.Errorf("steps %q: the ManagedResource of another owner counts", steps(decision))
	}
}

// TestTheRecordIsLost checks that the rollout is not held if the bundle that recorded the last change of inputs is lost. Then
// nothing shows that only the program has changed since.
func TestTheRecordIsLost(t *testing.T) {
	live := emitted(t, Plan{Inputs: "before", Bundles: []Bundle{bundle("a", "1"), bundle("b", "1")}})
	live = carriedOut(t, live, decide(t, Plan{Inputs: "after", Bundles: []Bundle{bundle("a", "1"), bundle("b", "changed")}}, live))
	delete(live.ManagedResources, named("b"))
	v2 := Plan{Inputs: "after", Bundles: []Bundle{bundle("a", "2"), bundle("b", "2")}}
	if decision, _ := passHeld(t, v2, live); steps(decision) != "Update a, Create b" {
		t.Errorf("steps %q", steps(decision))
	}
}
