package flow

import (
	"testing"
	"time"
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
