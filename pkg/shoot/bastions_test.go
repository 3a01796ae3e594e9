package shoot

import (
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestBastions checks that a deletion begins when the Bastions are deleted. A forced deletion does not wait, except for its
// namespace, which waits for five minutes.
func TestBastions(t *testing.T) {
	bastions := func(all ...Bastion) func(*Inputs) {
		return func(in *Inputs) { in.Bastions = all }
	}
	deleting := func(in *Inputs) { in.Deleting = true }
	in := up(t, cleaned, deleting, bastions(Bastion{Name: "a", Deleted: now.Add(-time.Minute)}, Bastion{Name: "b"}))
	plan := planOf(t, in)
	if len(plan.Tombstones)+len(plan.Bundles)+len(plan.Tasks) > 0 || len(plan.Waits) != 1 || !strings.Contains(plan.Waits[0].Reason, "Bastions a, b") ||
		len(plan.Waits[0].Holds) != len(in.Emitted) || !plan.Waits[0].Deadline.Equal(now.Add(19*time.Minute)) {
		t.Errorf("the plan is\n%s", summary(t, plan))
	}
	if plan := planOf(t, up(t, bastions(Bastion{Name: "a"}))); len(plan.Waits) > 0 || len(plan.Bundles) == 0 {
		t.Errorf("a Shoot that is not being deleted waits for Bastions:\n%s", summary(t, plan))
	}

	if plan := planOf(t, up(t, forced, bastions(Bastion{Name: "a"}))); len(plan.Tombstones) == 0 {
		t.Errorf("a forced deletion waits for Bastions:\n%s", summary(t, plan))
	}
	alone := func(in *Inputs) { in.Emitted = []flow.Key{in.key(bundleNamespace)} }
	for name, test := range map[string]struct {
		bastion Bastion
		held    bool
	}{
		"not deleted": {Bastion{Name: "a"}, true}, "deleted": {Bastion{Name: "a", Deleted: now.Add(-4 * time.Minute)}, true},
		"left": {Bastion{Name: "a", Deleted: now.Add(-5 * time.Minute)}, false},
	} {
		plan := planOf(t, up(t, forced, alone, bastions(test.bastion)))
		if held := len(plan.Tombstones) == 0 && len(plan.Waits) == 1 && plan.NextAt(now).After(now); held != test.held {
			t.Errorf("%s:\n%s", name, summary(t, plan))
		}
	}
}
