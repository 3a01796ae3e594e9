package flow

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestReleaseOfWhatIsDeletedByHand checks which ManagedResources that are being deleted are released.
func TestReleaseOfWhatIsDeletedByHand(t *testing.T) {
	base := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1", "a")}}
	confirm := func(after ...Key) Plan {
		return Plan{Deleting: true, Tombstones: []Tombstone{{Key: named("a"), Confirm: true, After: after}}}
	}
	applied := func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{}}
		mr.Finalizers = []string{resourcesv1alpha1.Finalizer}
	}
	for name, test := range map[string]struct {
		plan   Plan
		change func(*resourcesv1alpha1.ManagedResource)
		want   string
	}{
		"wanted":                       {base, applied, "Release a"},
		"wanted and released":          {base, func(mr *resourcesv1alpha1.ManagedResource) { keep := true; mr.Spec.KeepObjects = &keep }, ""},
		"held":                         {Plan{Bundles: base.Bundles, Waits: []Wait{{Name: "w", Holds: []Key{named("a")}}}}, applied, ""},
		"not needed in a deletion":     {Plan{Bundles: base.Bundles, Deleting: true}, applied, ""},
		"needed in a deletion":         {Plan{Bundles: base.Bundles, Deleting: true, Recreated: []Key{named("a")}}, applied, "Release a"},
		"deleted, not its turn":        {confirm(named("b")), applied, ""},
		"deleted, unconfirmed":         {confirm(), applied, ""}, // after its dependents
		"deleted in its turn":          {confirm(named("other")), applied, "Confirm a"},
		"deleted, with an older order": {Plan{Deleting: true, Tombstones: []Tombstone{{Key: named("a"), After: []Key{}}}}, applied, "Release a"},
		"deleted, and nothing held":    {Plan{Deleting: true, Tombstones: []Tombstone{{Key: named("b"), After: []Key{}}}}, applied, "Delete b"},
	} {
		live := emitted(t, base)
		mr := live.ManagedResources[named("a")]
		mr.DeletionTimestamp = &metav1.Time{Time: start}
		test.change(mr)
		if got := steps(decide(t, test.plan, live)); got != test.want {
			t.Errorf("%s: the steps are %q, want %q", name, got, test.want)
		}
	}
	circle := Plan{Tombstones: []Tombstone{{Key: named("a"), After: []Key{named("b")}}, {Key: named("b"), After: []Key{named("a")}}}}
	if err := circle.Validate(); err == nil {
		t.Error("tombstones that wait for each other are accepted")
	}
}

// TestNothingWasApplied checks that a bundle without any applied object is deleted without a confirmation, before
// others, and only in the observed version.
func TestNothingWasApplied(t *testing.T) {
	live := emitted(t, Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1", "a")}})
	mr := live.ManagedResources[named("a")]
	mr.Status.Resources, mr.ResourceVersion = nil, "7"
	plan := Plan{Deleting: true, Tombstones: []Tombstone{{Key: named("a"), Confirm: true, After: []Key{named("b")}}}}
	decision := decide(t, plan, live)
	if steps(decision) != "Delete a" || decision.Steps[0].resourceVersion != "7" {
		t.Errorf("the steps are %+v", decision.Steps)
	}
	mr.Finalizers, mr.Status.ObservedGeneration = []string{resourcesv1alpha1.Finalizer}, mr.Generation-1
	if decision := decide(t, plan, live); len(decision.Steps) > 0 {
		t.Errorf("it is deleted although a resource-manager might be applying it: %+v", decision.Steps)
	}
}
