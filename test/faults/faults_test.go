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
	short  = flag.Bool("faults.short", false, "inject one fault at each call")
)

// onDemand skips a test unless a flag asks for faults: the runs take minutes.
func onDemand(t *testing.T) {
	t.Helper()
	if !*full && !*short {
		t.Skip("neither -faults.short nor -faults.full is set (docs/faults.md)")
	}
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// TestFaults runs each scenario without a fault, and then once for each fault at each of its calls. The name of a run is
// "<scenario>/<call>/<fault>", so that a run can be repeated by its name.
func TestFaults(t *testing.T) {
	onDemand(t)
	table := &table{}
	t.Cleanup(func() { table.print(t) })
	for _, s := range scenarios() {
		table.add(s.name, func(*row) {})
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			visited, undisturbed := s.undisturbed(t)
			runs := plansFor(s.name, visited, *full)
			table.add(s.name, func(r *row) { r.sites = len(runs) })
			for _, run := range runs {
				t.Run(run.site.String(), func(t *testing.T) {
					t.Parallel()
					for _, fault := range run.faults {
						t.Run(fault.name, func(t *testing.T) {
							t.Parallel()
							s.disturbed(t, plan{run.site, fault}, undisturbed, table)
						})
					}
				})
			}
		})
	}
}

// undisturbed runs the scenario without a fault, and returns the sites it comes by and what is there in the end.
func (s scenario) undisturbed(t *testing.T) (visited []site, outcome string) {
	t.Helper()
	w := newWorld(t, s)
	l := w.newLine(nil)
	w.play(l)
	w.verify("")
	visited, _ = l.visited()
	return visited, w.snapshot()
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
	if _, injected := l.visited(); !injected && p.site.certain() {
		t.Error("the call did not come, so that there was no fault")
	}
}

// play runs the scenario until what is declared in the end is so, and stops the resource-manager then.
func (w *world) play(l *line) {
	w.Helper()
	w.Cleanup(w.clear)
	w.addOthers()
	w.declare(nil, w.given)
	stop := w.keepRunning(l)
	w.eventuallyHolds(w.given)
	w.remember()
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
	output := t.Output()
	if *full {
		output = os.Stdout // which is shown though all is well
	}
	writer := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
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
