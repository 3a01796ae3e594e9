package flow

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestDecide(t *testing.T) {
	base := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1", "a"), bundle("c", "1", "b")}, Inputs: "i1"}
	change := func(f func(*Plan)) Plan {
		plan := Plan{Bundles: slices.Clone(base.Bundles), Inputs: base.Inputs}
		f(&plan)
		return plan
	}
	mutate := func(f func(Live)) Live {
		live := emitted(t, base)
		f(live)
		return live
	}
	for name, test := range map[string]struct {
		live                    Live
		plan                    Plan
		steps                   string
		held, pending, problems []string
		unmentioned             int
		wrongPlan               string
	}{
		"creation in the order of dependencies": {live: nothingLive(), plan: base, steps: "Create a, Create b, Create c"},
		"rest":                                  {live: emitted(t, base), plan: base},
		"one bundle changes":                    {live: emitted(t, base), plan: change(func(p *Plan) { p.Bundles[1] = bundle("b", "2", "a") }), steps: "Update b"},
		"a held bundle keeps its revision": {live: emitted(t, base), plan: change(func(p *Plan) {
			p.Bundles[1] = bundle("b", "2", "a")
			p.Waits = []Wait{{Name: "w", Holds: []Key{named("b")}}}
		}), held: []string{"b"}},
		"a held bundle is not created": {live: nothingLive(), plan: change(func(p *Plan) {
			p.Waits = []Wait{{Name: "w", Holds: []Key{named("b")}}}
		}), steps: "Create a, Create c", held: []string{"b"}},
		"nothing is deleted without a tombstone": {live: emitted(t, base), plan: Plan{Bundles: base.Bundles[:1], Inputs: "i1"}, unmentioned: 2},
		"dependents are deleted first": {live: emitted(t, base), plan: Plan{Tombstones: tombstones("a", "b", "c")},
			steps: "Delete c", pending: []string{"a", "b"}},
		"a dependent that is not deleted keeps its dependency": {live: emitted(t, base), plan: Plan{
			Bundles: base.Bundles[1:], Tombstones: tombstones("a"), Inputs: "i1"}, pending: []string{"a"}},
		"a tombstone of what is gone": {live: nothingLive(), plan: Plan{Tombstones: tombstones("a")}},
		"a plan wants back what is being deleted": {live: mutate(func(l Live) {
			l.ManagedResources[named("b")].DeletionTimestamp = &metav1.Time{Time: start}
		}), plan: change(func(p *Plan) { p.Bundles[2] = bundle("c", "2", "b") }), steps: "Release b", pending: []string{"b", "c"}},
		"edited by hand": {live: mutate(func(l Live) {
			l.ManagedResources[named("b")].Spec.SecretRefs[0].Name = "other"
		}), plan: base, steps: "Update b"},
		"spec edited by hand": {live: mutate(func(l Live) {
			l.ManagedResources[named("b")].Spec.InjectLabels = map[string]string{"a": "b"}
		}), plan: base, steps: "Update b"},
		"a problem holds what depends on it": {live: emitted(t, base), plan: change(func(p *Plan) {
			p.Bundles[0].Objects = nil
			p.Bundles[1] = bundle("b", "2", "a")
		}), problems: []string{"a"}, pending: []string{"b"}},
		"nothing is created while deleting":  {live: nothingLive(), plan: change(func(p *Plan) { p.Deleting = true }), held: []string{"a", "b", "c"}},
		"new inputs alone are recorded once": {live: emitted(t, base), plan: change(func(p *Plan) { p.Inputs = "i2" }), steps: "Record a"},
		"a cycle":                            {live: nothingLive(), plan: Plan{Bundles: []Bundle{bundle("a", "1", "b"), bundle("b", "1", "a")}}, wrongPlan: "wait for each other"},
		"wanted and deleted":                 {live: nothingLive(), plan: Plan{Bundles: base.Bundles, Tombstones: tombstones("a")}, wrongPlan: "as a bundle and as a tombstone"},
		"held and deleted": {live: nothingLive(), plan: Plan{Tombstones: tombstones("a"), Waits: []Wait{{Name: "w", Holds: []Key{named("a")}}}},
			wrongPlan: "which the plan deletes"},
	} {
		t.Run(name, func(t *testing.T) {
			decision, err := Decide(owner, test.plan, test.live, rules())
			if test.wrongPlan != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrongPlan) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := steps(decision); got != test.steps {
				t.Errorf("steps %q, want %q", got, test.steps)
			}
			for what, lists := range map[string][2][]string{
				"held": {sortedKeys(decision.Held), test.held}, "pending": {sortedKeys(decision.Pending), test.pending},
				"problems": {sortedKeys(decision.Problems), test.problems},
			} {
				if !slices.Equal(lists[0], lists[1]) {
					t.Errorf("%s %v, want %v", what, lists[0], lists[1])
				}
			}
			if len(decision.Unmentioned) != test.unmentioned {
				t.Errorf("unmentioned %v", decision.Unmentioned)
			}
		})
	}
}

// TestTurnedOrderWaitsForHeldBundles checks that a bundle is not written while it would wait for a held one that still waits for it, and that
// both are written in one pass once nothing is held.
func TestTurnedOrderWaitsForHeldBundles(t *testing.T) {
	live := emitted(t, Plan{Bundles: []Bundle{bundle("a", "1", "b"), bundle("b", "1"), bundle("c", "1")}})
	turned := Plan{
		Bundles: []Bundle{bundle("a", "2"), bundle("b", "2", "a"), bundle("c", "2", "b")},
		Waits:   []Wait{{Name: "unknown", Holds: []Key{named("a")}}},
	}
	held := decide(t, turned, live)
	if !strings.Contains(held.Pending[named("b")], "wait for each other") || held.Pending[named("c")] == "" || len(held.Steps) > 0 {
		t.Errorf("while one is held: steps %v, pending %v", held.Steps, held.Pending)
	}
	turned.Waits = nil
	if free := decide(t, turned, live); len(free.Steps) != 3 || free.Steps[0].Key != named("a") || len(free.Pending) > 0 {
		t.Errorf("while none is held: steps %v, pending %v", free.Steps, free.Pending)
	}
}

func TestTombstoneConfirmsFirst(t *testing.T) {
	live := emitted(t, Plan{Bundles: []Bundle{bundle("a", "1")}})
	plan := Plan{Tombstones: []Tombstone{{Key: named("a"), Confirm: true}}}
	decision := decide(t, plan, live)
	if steps(decision) != "Confirm a" {
		t.Fatalf("steps %q", steps(decision))
	}
	live = carriedOut(t, live, decision)
	if decision = decide(t, plan, live); steps(decision) != "" || decision.Pending[named("a")] == "" {
		t.Errorf("steps %q before the confirmation is applied, pending %v", steps(decision), decision.Pending)
	}
	ready(live.ManagedResources[named("a")])
	if decision = decide(t, plan, live); steps(decision) != "Delete a" {
		t.Errorf("steps %q", steps(decision))
	}
	if decision = decide(t, Plan{Bundles: []Bundle{bundle("a", "1")}}, live); steps(decision) != "Update a" {
		t.Errorf("after the bundle is wanted again: steps %q", steps(decision))
	}
}

func TestEqualBundlesAreEqualWhateverTheirOrder(t *testing.T) {
	one := Bundle{Key: named("a"), Objects: []client.Object{configMap("x", "1"), configMap("y", "1")}}
	other := Bundle{Key: named("a"), Objects: []client.Object{configMap("y", "1"), configMap("x", "1")}}
	live := emitted(t, Plan{Bundles: []Bundle{one}})
	if decision := decide(t, Plan{Bundles: []Bundle{other}}, live); len(decision.Steps) > 0 {
		t.Errorf("steps %q", steps(decision))
	}
	twice := Bundle{Key: named("a"), Objects: []client.Object{configMap("x", "1"), configMap("x", "2")}}
	if decision := decide(t, Plan{Bundles: []Bundle{twice}}, live); !strings.Contains(decision.Problems[named("a")], "twice") {
		t.Errorf("problems %v", decision.Problems)
	}
}

func TestBundleIsSplit(t *testing.T) {
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		// Brotli cannot compress these texts below the limit together.
		objects = append(objects, configMap(name, incompressible(name, 700_000)))
	}
	live := emitted(t, Plan{Bundles: []Bundle{{Key: named("big"), Objects: objects}}})
	mr := live.ManagedResources[named("big")]
	if len(mr.Spec.SecretRefs) < 2 || len(live.missing(mr)) > 0 {
		t.Errorf("Secrets %v", mr.Spec.SecretRefs)
	}
	if decision := decide(t, Plan{Bundles: []Bundle{{Key: named("big"), Objects: objects}}}, live); len(decision.Steps) > 0 {
		t.Errorf("steps %q", steps(decision))
	}
}

func TestOwnerNeedsUID(t *testing.T) {
	if _, err := Decide(Owner{Flow: "shoot"}, Plan{}, nothingLive(), rules()); err == nil {
		t.Error("no error for an owner without a UID")
	}
	if (Owner{Flow: "shoot"}).owns((&resourcesv1alpha1.ManagedResource{}).Labels) {
		t.Error("an owner without a UID owns objects without labels")
	}
}
