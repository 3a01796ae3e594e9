// Package faults injects one fault into each call that the resource-manager makes, and checks that nothing is lost.
package faults

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

var (
	shared controlplane.Shared
	full   = flag.Bool("faults.full", false, "inject every fault at every call of every scenario, and print a table")
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// TestFaults runs each scenario without a fault, and then once for each fault at each of its calls. The name of a run is
// "<scenario>/<call>/<fault>", so that a run can be repeated by its name.
func TestFaults(t *testing.T) {
	table := &table{}
	t.Cleanup(func() { table.print(t) })
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			sites, undisturbed := s.undisturbed(t)
			table.add(s.name, func(r *row) { r.sites = len(sites) })
			for turn, site := range sites {
				t.Run(site.String(), func(t *testing.T) {
					t.Parallel()
					for _, fault := range chosen(site, turn) {
						t.Run(fault.name, func(t *testing.T) {
							t.Parallel()
							s.disturbed(t, plan{site.String(), fault}, undisturbed, table)
						})
					}
				})
			}
		})
	}
}

// chosen returns the faults for a site: all of them in a full run, otherwise one, another one at each site.
func chosen(s site, turn int) []fault {
	faults := faultsOf(s.call)
	if *full {
		return faults
	}
	return faults[turn%len(faults):][:1]
}

// undisturbed runs the scenario without a fault, and returns its sites and what is there in the end.
func (s scenario) undisturbed(t *testing.T) (sites []site, outcome string) {
	t.Helper()
	w := newWorld(t, s)
	l := w.newLine(nil)
	w.play(l)
	w.verify("")
	visited, _ := l.visited()
	return sitesToDisturb(visited, *full), w.snapshot()
}

// disturbed runs the scenario with a fault.
func (s scenario) disturbed(t *testing.T, p plan, undisturbed string, results *table) {
	t.Helper()
	w := newWorld(t, s)
	l := w.newLine(&p)
	defer func() {
		visited, injected := l.visited()
		results.count(t, s.name, injected)
		if t.Failed() {
			t.Logf("injected: %t; calls: %v", injected, visited)
		}
	}()
	w.play(l)
	w.verify(undisturbed)
}

// play runs the scenario until what is declared in the end is so, and stops the resource-manager then.
func (w *world) play(l *line) {
	w.Helper()
	w.Cleanup(w.removeDefinitions)
	w.addOthers()
	w.declare(nil, w.given)
	stop := w.keepRunning(l)
	w.eventuallyHolds(w.given)
	w.kept = w.uidsOfBoth()
	if w.stopped {
		stop()
	}
	l.begin()
	w.declare(w.given, w.then)
	if w.stopped {
		stop = w.keepRunning(l)
	}
	w.eventuallyHolds(w.then)
	stop()
}

// sitesToDisturb returns the sites at which faults are injected: all of them in a full run, and otherwise the first one of each kind
// of call.
func sitesToDisturb(visited []site, full bool) []site {
	var sites []site
	seen := map[string]bool{}
	for _, site := range visited {
		if !site.enumerated() || !full && seen[site.kind()] {
			continue
		}
		seen[site.kind()] = true
		sites = append(sites, site)
	}
	return sites
}

// row is what the table tells of a scenario.
type row struct {
	name                           string
	sites, runs, missed, violating int
}

// table is what became of the runs.
type table struct {
	mu   sync.Mutex
	rows []*row
}

func (b *table) add(name string, change func(*row)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rows {
		if r.name == name {
			change(r)
			return
		}
	}
	b.rows = append(b.rows, &row{name: name})
	change(b.rows[len(b.rows)-1])
}

// count notes a run that has ended.
func (b *table) count(t *testing.T, name string, injected bool) {
	t.Helper()
	b.add(name, func(r *row) {
		r.runs++
		if !injected {
			r.missed++
		}
		if t.Failed() {
			r.violating++
		}
	})
}

func (b *table) print(t *testing.T) {
	t.Helper()
	writer := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(writer, "scenario\tsites\truns\tcall did not come\tfailures")
	total := row{name: "all"}
	for _, r := range b.rows {
		fmt.Fprintf(writer, "%s\t%d\t%d\t%d\t%d\n", r.name, r.sites, r.runs, r.missed, r.violating)
		total.sites, total.runs = total.sites+r.sites, total.runs+r.runs
		total.missed, total.violating = total.missed+r.missed, total.violating+r.violating
	}
	fmt.Fprintf(writer, "%s\t%d\t%d\t%d\t%d\n", total.name, total.sites, total.runs, total.missed, total.violating)
	if err := writer.Flush(); err != nil {
		t.Error(err)
	}
}
