package flow

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestACacheThatIsBehind checks that a bundle is not written again because the cache does not show it yet, and that a deleted
// bundle does not count as existing for long.
func TestACacheThatIsBehind(t *testing.T) {
	plan := Plan{Bundles: []Bundle{bundle("a", "1")}}
	answer := emitted(t, plan).ManagedResources[named("a")]
	answer.ResourceVersion = "10"
	for name, test := range map[string]struct {
		cached  string
		secrets bool
		after   time.Duration
		steps   string
		again   bool
	}{
		"it shows nothing":                          {"", false, time.Second, "", true},
		"it shows nothing after a while":            {"", false, behindFor, "Create a", false},
		"it shows the version before":               {"9", true, time.Second, "", true},
		"it shows what was written, not its Secret": {"10", false, time.Second, "", true},
		"it does not show the Secret after a while": {"10", false, behindFor, "Restore a", false},
		"it shows what was written":                 {"10", true, time.Second, "", false},
		"it shows what others have written":         {"11", true, time.Second, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var r recent
			r.record(owner, answer, start)
			live := nothingLive()
			if test.cached != "" {
				mr := answer.DeepCopy()
				mr.ResourceVersion = test.cached
				live.ManagedResources[named("a")] = mr
			}
			for _, reference := range answer.Spec.SecretRefs {
				if test.secrets {
					live.Secrets[Key{Namespace: answer.Namespace, Name: reference.Name}] = true
				}
			}
			again := r.complete(owner, live, start.Add(test.after))
			if got := steps(decide(t, plan, live)); got != test.steps {
				t.Errorf("steps %q, want %q", got, test.steps)
			}
			if again.IsZero() == test.again {
				t.Errorf("next check at %v", again)
			}
			if !test.again && len(r.byOwner) > 0 {
				t.Errorf("remembered are %v", r.byOwner)
			}
		})
	}
}

// TestRecentWritesAreForgotten checks that no write of an owner that is gone stays in memory: neither that of its deletion, nor
// that of an owner that is never seen again.
func TestRecentWritesAreForgotten(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(testScheme()).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).Build()
	clock := testingclock.NewFakeClock(start)
	e := &Emitter{Reader: c, Uncached: c, Writer: c, FieldManager: "x", Rules: rules(), Clock: clock}
	emit := func(of Owner, plan Plan) {
		t.Helper()
		if _, err := e.Emit(t.Context(), of, plan); err != nil {
			t.Fatal(err)
		}
		applyAll(t, c)
		clock.Step(time.Second)
	}
	moved := owner
	moved.UID = "moved"
	away := bundle("away", "1")
	emit(moved, Plan{Bundles: []Bundle{away}})
	emit(owner, Plan{Bundles: []Bundle{bundle("etcd-main", "1")}})
	tombstones := []Tombstone{{Key: named("etcd-main"), Confirm: true}}
	emit(owner, Plan{Deleting: true, Tombstones: tombstones}) // confirms
	emit(owner, Plan{Deleting: true, Tombstones: tombstones}) // deletes
	emit(owner, Plan{Deleting: true})
	if all := e.recent.byOwner[owner.UID]; len(all) > 0 {
		t.Errorf("after the deletion, these are remembered: %v", all)
	}
	clock.Step(2 * behindFor)
	another := owner
	another.UID = "another"
	emit(another, Plan{})
	if len(e.recent.byOwner) > 0 {
		t.Errorf("of an owner that is not seen any more, these are remembered: %v", e.recent.byOwner)
	}
}

// applyAll does what the resource-manager does: it reports that all ManagedResources are applied.
func applyAll(t *testing.T, c client.Client) {
	t.Helper()
	var list resourcesv1alpha1.ManagedResourceList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		ready(&list.Items[i])
		if err := c.Status().Update(t.Context(), &list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
}
