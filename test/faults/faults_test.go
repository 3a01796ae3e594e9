// Package faults injects one fault into each call that the resource-manager makes, and checks that nothing is lost.
package faults

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var (
	full     = flag.Bool("faults.full", false, "inject every fault at every call of every scenario, and print a table")
	resume   = flag.String("faults.resume", "", "a file of runs that have passed, which are not made again; those that pass are added")
	together = flag.Int("faults.together", 1, "how many faults a run of a long scenario meets, one after the other")
	choose   = flag.String("faults.choose", "", "write the runs of the short run into a file")
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(gardens.Stop(shared.Run(m)))
}

// trial is one run of a scenario.
type trial interface {
	// newLine returns the clients of all controllers of the run, which meet the faults of plans.
	newLine(plans ...*plan) *line
	// play runs the scenario until all is as it has to be, and stops the controllers then.
	play(l *line)
	// verify checks what has to hold when nothing runs any more; undisturbed is the snapshot of a run without a fault.
	verify(undisturbed string)
	// snapshot tells what is there at the end of a run, without what differs between runs.
	snapshot() string
}

// subject is a scenario of which runs can be begun.
type subject struct {
	name  string
	begin func(*testing.T) trial
	// hasty has things change while others are being done, so that no call is sure to come.
	hasty bool
	// long has enough calls for several faults in one run, far from each other.
	long bool
}

// subjects returns all scenarios.
func subjects() []subject {
	var all []subject
	for _, s := range append(changes(), workloads()...) {
		all = append(all, subject{name: s.name, begin: func(t *testing.T) trial {
			t.Helper()
			return newWorld(t, s)
		}, hasty: s.through != nil})
	}
	for _, e := range []struct {
		name  string
		begin func(*ground) errand
	}{
		{"tokens", newTokens}, {"renewal", newRenewal}, {"token-end", newTokenEnd}, {"certificates", newCertificates},
		{"policies", newPolicies}, {"garbage", newGarbage}, {"sites", newSites(false, false)}, {"sites-new", newSites(true, false)}, {"sites-end", newSites(false, true)},
	} {
		all = append(all, subject{name: e.name, begin: func(t *testing.T) trial {
			t.Helper()
			return newJob(t, e.begin)
		}})
	}
	return append(all, subject{name: "shoot", begin: func(t *testing.T) trial {
		t.Helper()
		return newShootLife(t)
	}, hasty: true, long: true})
}

// TestFaults runs each scenario without a fault, and then once for each fault at each of its calls, or those of the short run. The name
// of a run is "<scenario>/<call>/<fault>", so that a run can be repeated by its name.
func TestFaults(t *testing.T) {
	results := newTable(t)
	chosen := shortRun(t)
	for _, s := range subjects() {
		if !*full && *choose == "" && len(chosen[s.name]) == 0 {
			continue
		}
		results.of(s.name)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			visited, undisturbed := s.undisturbed(t)
			if *choose != "" {
				again, _ := s.undisturbed(t) // what does not come in every run is no choice
				visited = slices.DeleteFunc(visited, func(here site) bool { return !slices.Contains(again, here) })
			}
			runs := plansFor(visited, chosen[s.name], *full)
			results.expect(s.name, visited, runs)
			if s.long && *together > 1 {
				s.disturbedTogether(t, runs, undisturbed, results)
				return
			}
			for _, run := range runs {
				t.Run(run.site.String(), func(t *testing.T) {
					t.Parallel()
					for _, fault := range run.faults {
						t.Run(fault.name, func(t *testing.T) {
							if results.passedBefore(t, s.name, run.site, fault.name) {
								return
							}
							t.Parallel()
							s.disturbed(t, []*plan{{site: run.site, fault: fault}}, undisturbed, results)
						})
					}
				})
			}
		})
	}
}

// undisturbed runs the scenario without a fault, and returns the sites it comes by and what is there in the end.
func (s subject) undisturbed(t *testing.T) (visited []site, outcome string) {
	t.Helper()
	r := s.begin(t)
	l := r.newLine()
	r.play(l)
	r.verify("")
	return l.visited(), r.snapshot()
}

// disturbedTogether runs the scenario with several faults in each run. Those of a run are as far from each other as they can be. The first calls of each
// object are disturbed first.
func (s subject) disturbedTogether(t *testing.T, runs []disturbance, undisturbed string, results *table) {
	t.Helper()
	open := map[bool][]*plan{}
	for _, run := range runs {
		for _, fault := range run.faults {
			if first := run.site.occurrence == 1; !results.passedBefore(t, s.name, run.site, fault.name) {
				open[first] = append(open[first], &plan{site: run.site, fault: fault})
			}
		}
	}
	for _, part := range []struct {
		name  string
		plans []*plan
	}{{"first", open[true]}, {"further", open[false]}} {
		t.Run(part.name, func(t *testing.T) {
			for i, plans := range spread(part.plans, *together) {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) {
					t.Parallel()
					s.disturbed(t, plans, undisturbed, results)
				})
			}
		})
	}
}

// disturbed runs the scenario with faults.
func (s subject) disturbed(t *testing.T, plans []*plan, undisturbed string, results *table) {
	t.Helper()
	r := s.begin(t)
	l := r.newLine(plans...)
	defer func() {
		for _, p := range plans {
			results.count(t, s.name, p.site, p.fault.name, l.injected(p), len(plans) == 1)
			if t.Failed() {
				t.Logf("%s, injected: %t", p, l.injected(p))
			}
		}
		if t.Failed() {
			t.Logf("calls: %v", l.visited())
		}
	}()
	r.play(l)
	r.verify(undisturbed)
	for _, p := range plans {
		if !l.injected(p) && p.site.certain() && !s.hasty {
			t.Error("the call did not come, so that there was no fault")
		}
	}
}
