package faults

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/trellis-k8s/trellis/test/kit"
)

// progressEvery is the number of runs after which a full run prints its progress.
const progressEvery = 25

// callMissed follows the name of a run in the journal if its call was not made.
const callMissed = " without its call"

// row holds the results of a scenario.
type row struct {
	name          string
	calls, sites  int
	runs, failing map[string]int // by fault
	missed        int
}

// table holds the results of all runs.
type table struct {
	mu   sync.Mutex
	rows []*row
	// kinds holds the results by the kind of the call, over all scenarios.
	kinds map[string]*row
	// expected and done count runs. Runs that passed before are not repeated. Visited are the sites of scenarios.
	expected, done int
	// passed records for each run whether its call was made.
	passed  map[string]bool
	visited map[string][]site
	journal *os.File
}

// newTable returns a table that is printed when the test ends.
func newTable(t *testing.T) *table {
	t.Helper()
	b := &table{passed: map[string]bool{}, visited: map[string][]site{}, kinds: map[string]*row{}}
	if *resume != "" {
		b.open(t, *resume)
	}
	t.Cleanup(func() {
		if *choose != "" {
			writeLines(t, *choose, chosenOf(b.visited))
			return
		}
		b.print(t)
	})
	return b
}

// open reads the runs that passed, and keeps the file open to append further ones.
func (b *table) open(t *testing.T, path string) {
	t.Helper()
	var err error
	b.journal, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, b.journal.Close()) })
	lines := bufio.NewScanner(b.journal)
	for lines.Scan() {
		name, missed := strings.CutSuffix(lines.Text(), callMissed)
		b.passed[name] = !missed
	}
	kit.Must(t, lines.Err())
}

// of returns the row of a scenario.
func (b *table) of(scenario string) *row {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rows {
		if r.name == scenario {
			return r
		}
	}
	r := &row{name: scenario, runs: map[string]int{}, failing: map[string]int{}}
	b.rows = append(b.rows, r)
	return r
}

// expect records the calls of a scenario and its planned runs.
func (b *table) expect(scenario string, visited []site, runs []disturbance) {
	r := b.of(scenario)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.visited[scenario] = visited
	r.calls, r.sites = len(visited), len(runs)
	for _, run := range runs {
		b.expected += len(run.faults)
		of := b.ofKind(run.site)
		of.sites++
	}
	for _, each := range visited {
		b.ofKind(each).calls++
	}
}

// ofKind returns the row for the kind of a call. The caller holds the lock.
func (b *table) ofKind(here site) *row {
	kind := here.kind()
	if b.kinds[kind] == nil {
		b.kinds[kind] = &row{name: kind, runs: map[string]int{}, failing: map[string]int{}}
	}
	return b.kinds[kind]
}

// passedBefore reports whether a run has passed before, and counts it if so.
func (b *table) passedBefore(t *testing.T, scenario string, here site, fault string) bool {
	t.Helper()
	b.mu.Lock()
	injected, passed := b.passed[nameOf(scenario, here, fault)]
	b.mu.Unlock()
	if passed {
		b.count(t, scenario, here, fault, injected, true)
	}
	return passed
}

// nameOf returns the name of a run.
func nameOf(scenario string, here site, fault string) string {
	return fmt.Sprintf("%s/%s/%s", scenario, here, fault)
}

// count records a run that has ended. Alone means that it had no other fault. Otherwise another fault might be the
// reason why the call was not made, and the run is repeated.
func (b *table) count(t *testing.T, scenario string, here site, fault string, injected, alone bool) {
	t.Helper()
	r, name := b.of(scenario), nameOf(scenario, here, fault)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	for _, each := range []*row{r, b.ofKind(here)} {
		each.runs[fault]++
		if t.Failed() {
			each.failing[fault]++
		}
		if !injected {
			each.missed++
		}
	}
	if !injected {
		name += callMissed
	}
	if b.journal != nil && !t.Failed() && (injected || alone) {
		b.note(t, name)
	}
	if *full && b.done%progressEvery == 0 {
		fmt.Printf("%d of at least %d runs\n", b.done, b.expected)
	}
}

// note writes to the journal that a run has passed, unless the journal has it.
func (b *table) note(t *testing.T, name string) {
	t.Helper()
	run, missed := strings.CutSuffix(name, callMissed)
	if _, known := b.passed[run]; known {
		return
	}
	b.passed[run] = !missed
	if _, err := fmt.Fprintln(b.journal, name); err != nil {
		t.Error(err)
	}
}

// print prints the number of runs, followed by a slash and the number of violations, by scenario and fault. A full
// run also prints them by the kind of the call and fault.
func (b *table) print(t *testing.T) {
	t.Helper()
	if !*full {
		b.printRows(t, t.Output(), "scenario", b.rows)
		return
	}
	// printed even if all runs pass
	b.printRows(t, os.Stdout, "scenario", b.rows)
	kinds := slices.SortedFunc(maps.Values(b.kinds), func(a, b *row) int { return strings.Compare(a.name, b.name) })
	fmt.Println()
	b.printRows(t, os.Stdout, "call", kinds)
}

func (b *table) printRows(t *testing.T, output io.Writer, what string, rows []*row) {
	t.Helper()
	writer := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	header := []string{what, "calls", "sites"}
	for _, fault := range allFaults() {
		header = append(header, fault.name)
	}
	fmt.Fprintln(writer, strings.Join(append(header, "runs", "call not made", "violations"), "\t"))
	total := &row{name: "all", runs: map[string]int{}, failing: map[string]int{}}
	for _, r := range rows {
		if r.calls == 0 {
			continue // not selected by -run
		}
		r.print(writer)
		total.calls, total.sites, total.missed = total.calls+r.calls, total.sites+r.sites, total.missed+r.missed
		for fault, runs := range r.runs {
			total.runs[fault] += runs
			total.failing[fault] += r.failing[fault]
		}
	}
	total.print(writer)
	if err := writer.Flush(); err != nil {
		t.Error(err)
	}
}

func (r *row) print(writer *tabwriter.Writer) {
	runs, failing := 0, 0
	fmt.Fprintf(writer, "%s\t%d\t%d", r.name, r.calls, r.sites)
	for _, fault := range allFaults() {
		runs, failing = runs+r.runs[fault.name], failing+r.failing[fault.name]
		fmt.Fprintf(writer, "\t%d", r.runs[fault.name])
		if r.failing[fault.name] > 0 {
			fmt.Fprintf(writer, "/%d", r.failing[fault.name])
		}
	}
	fmt.Fprintf(writer, "\t%d\t%d\t%d\n", runs, r.missed, failing)
}
