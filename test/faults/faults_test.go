// Package faults injects one fault into each call of the resource-manager and checks that no object is lost.
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
	resume   = flag.String("faults.resume", "", "a file with the runs that passed; they are not repeated, and further ones are added")
	together = flag.Int("faults.together", 1, "the number of faults in a run of a long scenario, one after the other")
	choose   = flag.String("faults.choose", "", "write the names of the runs of the short run to a file")
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(gardens.Stop(shared.Run(m)))
}

// trial is one run of a scenario.
type trial interface {
	// newLine returns the clients of all controllers of the run. It injects the faults of plans.
	newLine(plans ...*plan) *line
	// play runs the scenario until the expected state is reached, and then stops the controllers.
	play(l *line)
	// verify checks the final state after all processes have stopped. Undisturbed is the snapshot of a run without a
	// fault.
	verify(undisturbed string)
	// snapshot describes the final state of a run, without details that differ between runs.
	snapshot() string
}

// subject is a scenario and creates its runs.
type subject struct {
	name  string
	begin func(*testing.T) trial
	// hasty means that changes overlap with reconciliations, so that no call is certain.
	hasty bool
	// long means that the scenario has enough calls for several faults in one run, far from each other.
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

// TestFaults runs each scenario without a fault, and then once for each fault at each of its calls, or at those of
// the short run. The name of a run is "<scenario>/<call>/<fault>", so that a single run can be repeated.
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
				again, _ := s.undisturbed(t) // a call that not every run makes cannot be chosen
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

// undisturbed runs the scenario without a fault. It returns the visited sites and the final state.
func (s subject) undisturbed(t *testing.T) (visited []site, outcome string) {
	t.Helper()
	r := s.begin(t)
	l := r.newLine()
	r.play(l)
	r.verify("")
	return l.visited(), r.snapshot()
}

// disturbedTogether runs the scenario with several faults in each run, as far from each other as possible. The
// first calls for each object are disturbed first.
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
			t.Error("the call was not made, so no fault was injected")
		}
	}
}
