package firstnode

import (
	"testing"
	"time"
)

// TestDecide checks which node goes first, and when the others follow.
func TestDecide(t *testing.T) {
	now := time.Unix(1e9, 0)
	before := now.Add(-time.Hour)
	// on returns a node that is ready with a configuration, with changes.
	on := func(name, applied string, change ...func(*node)) node {
		made := node{name: name, applied: applied, appliedAt: before, ready: true}
		for _, each := range change {
			each(&made)
		}
		return made
	}
	since := func(age time.Duration) func(*node) { return func(n *node) { n.appliedAt = now.Add(-age) } }
	down := func(age time.Duration) func(*node) {
		return func(n *node) { n.ready, n.notReadySince = false, now.Add(-age) }
	}
	leaving := func(n *node) { n.leaving = true }
	three := []node{on("a", "old"), on("b", "old"), on("c", "old")}
	for name, test := range map[string]struct {
		pool         pool
		nodes        []node
		first, tried string
		again        time.Duration
	}{
		"nothing has changed":               {pool{"old", "a/old", "old", false}, three, "a/old", "old", 0},
		"no checksum":                       {pool{"", "", "", false}, three, "", "", 0},
		"one after the other":               {pool{"new", "", "old", true}, three, "", "old", 0},
		"nodes that do not wait":            {pool{"new", "", "", false}, three, "", "new", 0},
		"changed":                           {pool{"new", "", "old", false}, three, "a/new", "old", 0},
		"changed again":                     {pool{"newer", "b/new", "old", false}, three, "a/newer", "old", 0},
		"no nodes":                          {pool{"new", "", "old", false}, nil, "", "new", 0},
		"only new nodes":                    {pool{"new", "", "old", false}, []node{on("a", "", down(time.Minute))}, "", "new", 0},
		"the first is down":                 {pool{"new", "", "old", false}, []node{on("a", "old", down(time.Hour)), on("b", "old")}, "b/new", "old", 0},
		"the first leaves":                  {pool{"new", "", "old", false}, []node{on("a", "old", leaving), on("b", "old")}, "b/new", "old", 0},
		"all leave":                         {pool{"new", "", "old", false}, []node{on("a", "old", leaving)}, "", "new", 0},
		"a new node has it already":         {pool{"new", "", "old", false}, []node{on("a", "old"), on("b", "new", since(time.Second))}, "b/new", "old", 89 * time.Second},
		"it has not applied it":             {pool{"new", "b/new", "old", false}, three, "b/new", "old", 0},
		"it has applied it":                 {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("b", "new", since(30*time.Second))}, "b/new", "old", time.Minute},
		"it runs with it":                   {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("b", "new", since(trial))}, "b/new", "new", 0},
		"its clock is wrong":                {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("b", "new", since(-time.Hour))}, "b/new", "old", trial},
		"it does not say when":              {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("b", "new", func(n *node) { n.appliedAt = time.Time{} })}, "b/new", "new", 0},
		"it fails with it":                  {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("b", "new", down(time.Hour))}, "b/new", "old", 0},
		"it goes down before":               {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("b", "old", down(time.Minute))}, "b/new", "old", 0},
		"it is deleted":                     {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("c", "old")}, "a/new", "old", 0},
		"it is replaced":                    {pool{"new", "b/new", "old", false}, []node{on("a", "old"), on("z", "new", down(time.Minute))}, "z/new", "old", 0},
		"the next one is tried where it is": {pool{"newer", "b/new", "old", false}, []node{on("a", "old"), on("b", "new", down(time.Minute))}, "b/newer", "old", 0},
		"also if it could not be applied":   {pool{"newer", "b/new", "old", false}, []node{on("a", "old"), on("b", "old", down(time.Minute))}, "b/newer", "old", 0},
		"it went down later":                {pool{"new", "b/old", "old", false}, []node{on("a", "old"), on("b", "old", down(time.Minute))}, "a/new", "old", 0},
		"all went down just now":            {pool{"new", "a/new", "old", false}, []node{on("a", "new", down(time.Minute)), on("b", "old", down(2*time.Minute))}, "a/new", "old", 4 * time.Minute},
		"all are down":                      {pool{"new", "a/new", "old", false}, []node{on("a", "new", down(time.Hour)), on("b", "old", down(allDown))}, "a/new", "new", 0},
	} {
		first, tried, again := test.pool.decide(test.nodes, now)
		if first != test.first || tried != test.tried || again != test.again {
			t.Errorf("%s: first %q, tried %q, again in %s; want %q, %q, %s", name, first, tried, again, test.first, test.tried, test.again)
		}
	}
}

// TestFailingConfigurationsUseOneNode runs a pool through configurations with which nodes fail: only one node of the pool gets them, and
// all get the one that works.
func TestFailingConfigurationsUseOneNode(t *testing.T) {
	now := time.Unix(1e9, 0)
	of := pool{checksum: "0", tried: "0"}
	nodes := []node{{name: "a", applied: "0", ready: true}, {name: "b", applied: "0", ready: true}, {name: "c", applied: "0", ready: true}}
	touched := map[string]bool{}
	for _, checksum := range []string{"bad", "worse", "good"} {
		of.checksum = checksum
		for range 100 { // each a step of a minute
			of.first, of.tried, _ = of.decide(nodes, now)
			for i := range nodes {
				if nodes[i].applied == checksum || of.tried != checksum && of.first != nodes[i].name+"/"+checksum {
					continue
				}
				touched[nodes[i].name] = touched[nodes[i].name] || checksum != "good"
				nodes[i].applied, nodes[i].appliedAt = checksum, now
				if works := checksum == "good"; works != nodes[i].ready {
					nodes[i].ready, nodes[i].notReadySince = works, now
				}
			}
			now = now.Add(time.Minute)
		}
	}
	if !touched["a"] || touched["b"] || touched["c"] {
		t.Errorf("failing configurations were applied by %v", touched)
	}
	for _, each := range nodes {
		if each.applied != "good" || !each.ready {
			t.Errorf("node %+v does not run with the configuration that works", each)
		}
	}
}
