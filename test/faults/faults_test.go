// Package faults injects one fault into each call that the resource-manager makes, and checks that nothing is lost.
package faults

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var (
	full   = flag.Bool("faults.full", false, "inject every fault at every call of every scenario, and print a table")
	resume = flag.String("faults.resume", "", "a file of runs that have passed, which are not made again; those that pass are added")
	choose = flag.String("faults.choose", "", "write the runs of the short run into a file")
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(gardens.Stop(shared.Run(m)))
}

// trial is one run of a scenario.
type trial interface {
	// newLine returns the clients of all controllers of the run, which meet the fault of a plan, if it is not nil.
	newLine(p *plan) *line
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
}

// subjects returns all scenarios.
func subjects() []subject {
	var all []subject
	for _, s := range append(changes(), workloads()...) {
		all = append(all, subject{s.name, func(t *testing.T) trial {
			t.Helper()
			return newWorld(t, s)
		}, s.through != nil})
	}
	for _, e := range []struct {
		name  string
		begin func(*ground) errand
	}{
		{"tokens", newTokens}, {"renewal", newRenewal}, {"token-end", newTokenEnd}, {"certificates", newCertificates},
		{"policies", newPolicies}, {"garbage", newGarbage}, {"sites", newSites(false, false)}, {"sites-new", newSites(true, false)}, {"sites-end", newSites(false, true)},
	} {
		all = append(all, subject{e.name, func(t *testing.T) trial {
			t.Helper()
			return newJob(t, e.begin)
		}, false})
	}
	return append(all, subject{"shoot", func(t *testing.T) trial {
		t.Helper()
		return newShootLife(t)
	}, true})
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
			for _, run := range runs {
				t.Run(run.site.String(), func(t *testing.T) {
					t.Parallel()
					for _, fault := range run.faults {
						t.Run(fault.name, func(t *testing.T) {
							if results.passedBefore(t, s.name, run.site, fault.name) {
								return
							}
							t.Parallel()
							s.disturbed(t, plan{run.site, fault}, undisturbed, results)
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
	l := r.newLine(nil)
	r.play(l)
	r.verify("")
	visited, _ = l.visited()
	return visited, r.snapshot()
}

// disturbed runs the scenario with a fault.
func (s subject) disturbed(t *testing.T, p plan, undisturbed string, results *table) {
	t.Helper()
	r := s.begin(t)
	l := r.newLine(&p)
	defer func() {
		visited, injected := l.visited()
		results.count(t, s.name, p.site, p.fault.name, injected)
		if t.Failed() {
			t.Logf("injected: %t; calls: %v", injected, visited)
		}
	}()
	r.play(l)
	r.verify(undisturbed)
	if _, injected := l.visited(); !injected && p.site.certain() && !s.hasty {
		t.Error("the call did not come, so that there was no fault")
	}
}
