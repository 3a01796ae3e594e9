package flow

import (
	"slices"
	"testing"
	"time"
)

// newRolloutOfNodes returns a rollout to owners whose second bundles change nodes, except that of the last owner.
func newRolloutOfNodes(t *testing.T, owners int, pacing Pacing) *rollout {
	t.Helper()
	r := newRollout(t, owners, pacing)
	r.ofNodes = func(key Key) bool { return key.Name == "b" && key.Namespace != r.owner(owners-1).Name }
	r.restart(pacing)
	for i := range owners {
		r.nodes(i, Nodes{})
	}
	return r
}

func (r *rollout) nodes(number int, state Nodes) { r.pacer.ObserveNodes(r.owner(number).UID, state) }

func (r *rollout) later(by time.Duration) { r.clock.SetTime(r.clock.Now().Add(by)) }

// TestNodesHaveABudgetOfTheirOwn checks that owners whose nodes roll out hold only those that would change nodes, and for as long as
// their nodes roll out: longer than their ManagedResources.
func TestNodesHaveABudgetOfTheirOwn(t *testing.T) {
	r := newRolloutOfNodes(t, 4, Pacing{Budget: 10, Nodes: 1, MaxFailed: 2, Retry: time.Hour})
	if !r.pass(0, 2) || r.pass(1, 2) || r.pass(2, 2) {
		t.Fatal("want only the first owner with nodes admitted")
	}
	if !r.pass(3, 2) {
		t.Error("an owner without nodes waits for those of others")
	}
	r.finish(0)
	r.show()
	r.pass(0, 2)
	if r.pass(1, 2) {
		t.Error("an owner is admitted before the watch of the nodes can have shown the new configuration")
	}
	r.nodes(0, Nodes{Rolling: true})
	r.later(countEvery)
	if r.pass(1, 2) || len(r.woken()) > 0 {
		t.Error("an owner is admitted while nodes of another one roll out")
	}
	r.nodes(0, Nodes{})
	if woken := r.woken(); !slices.Equal(woken, []string{"s1"}) {
		t.Errorf("woken: %v, want s1, which waits for longest", woken)
	}
	if r.pass(2, 2) || !r.pass(1, 2) {
		t.Error("the slot was not given to the woken owner")
	}
}

// TestUnknownNodesUseTheBudget checks that after a restart no nodes are changed until those of all owners are known, but that a cluster
// whose nodes cannot be read does not hold the others forever.
func TestUnknownNodesUseTheBudget(t *testing.T) {
	pacing := Pacing{Budget: 10, Nodes: 1, MaxFailed: 2, Retry: time.Hour}
	r := newRolloutOfNodes(t, 3, pacing)
	r.restart(pacing)
	if r.pass(0, 2) {
		t.Error("an owner is admitted while it is not known whether nodes of others roll out")
	}
	r.nodes(1, Nodes{})
	if !r.pass(0, 2) {
		t.Error("an owner waits although the nodes of all others are known")
	}
	r = newRolloutOfNodes(t, 3, pacing)
	r.restart(pacing)
	r.pass(0, 2)
	r.later(nodesKnownAfter)
	if !r.pass(0, 2) {
		t.Error("unknown nodes hold the others forever")
	}
}

// TestFailingNodesStopTheRollout checks that nodes which fail with the new program stop its rollout, that others do not, and that nodes
// which never apply their configuration count as failing.
func TestFailingNodesStopTheRollout(t *testing.T) {
	pacing := Pacing{Budget: 10, Nodes: 9, MaxFailed: 2, Retry: time.Hour}
	for name, test := range map[string]struct {
		written bool
		state   Nodes
		wait    time.Duration
		stops   bool
	}{
		"with the new program":   {true, Nodes{Failing: true}, 0, true},
		"with the old program":   {false, Nodes{Failing: true}, 0, false},
		"rolling out":            {true, Nodes{Rolling: true}, nodesOverdue - time.Second, false},
		"not applied in an hour": {true, Nodes{Rolling: true}, nodesOverdue, true},
	} {
		r := newRolloutOfNodes(t, 4, pacing)
		for i := range 2 {
			if test.written {
				r.pass(i, 2)
				r.finish(i)
				r.pass(i, 2)
			}
			r.nodes(i, test.state)
		}
		r.show()
		r.later(test.wait)
		if stopped := !r.pass(2, 2); stopped != test.stops {
			t.Errorf("%s: stopped: %t", name, stopped)
		}
	}
}

// TestNodesThatRollOutForLongFreeTheirSlot checks that nodes which never apply their configuration do not use the budget forever.
func TestNodesThatRollOutForLongFreeTheirSlot(t *testing.T) {
	r := newRolloutOfNodes(t, 3, Pacing{Budget: 10, Nodes: 1, MaxFailed: 2, Retry: time.Hour})
	r.nodes(0, Nodes{Rolling: true})
	for after, want := range map[time.Duration]bool{nodesOverdue - time.Second: false, nodesOverdue: true} {
		r.clock.SetTime(start.Add(after))
		if _, nodes := r.pacer.Pacing.lacks(Change{Nodes: true}, r.pacer.others(waiting{owner: r.owner(1)}, r.clock.Now())); nodes == want {
			t.Errorf("after %s: the slot is free: %t", after, !nodes)
		}
	}
}
