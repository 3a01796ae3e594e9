package suite

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report are the results of a run.
type Report struct {
	// Cluster is the name of the tested cluster, such as "shoot".
	Cluster string `json:"cluster"`
	// Version is the version of the tests.
	Version string `json:"version"`
	// Selection is the regular expression that selected the tests.
	Selection string  `json:"selection,omitempty"`
	Total     Counts  `json:"total"`
	Areas     []Area  `json:"areas"`
	Tests     []Entry `json:"tests"`
	// Fixed are known failures that passed.
	Fixed []string `json:"fixed,omitempty"`
}

// Area are the counts of the tests of one special interest group.
type Area struct {
	Name string `json:"name"`
	Counts
}

// Counts are numbers of tests.
type Counts struct {
	Tests       int `json:"tests"`
	Passed      int `json:"passed"`
	Explained   int `json:"failedExplained"`
	Unexplained int `json:"failedUnexplained"`
	Skipped     int `json:"skipped"`
	NotRun      int `json:"notRun"`
}

// Entry is the result of a test with the explanation of its failure.
type Entry struct {
	Result
	Explanation string `json:"explanation,omitempty"`
}

// NewReport returns the report of tests, which may have no results.
func NewReport(cluster, version, selection string, tests []Test, results *Results, known []Known) *Report {
	r := &Report{Cluster: cluster, Version: version, Selection: selection}
	areas := map[string]*Counts{}
	for _, t := range tests {
		entry := Entry{Result: results.Result(t.Name)}
		explanation := Explain(known, cluster, t.Name)
		switch {
		case entry.State == Failed:
			entry.Explanation = explanation
		case entry.State == Passed && explanation != "":
			r.Fixed = append(r.Fixed, t.Name)
		}
		if areas[t.Area()] == nil {
			areas[t.Area()] = &Counts{}
		}
		areas[t.Area()].add(entry)
		r.Total.add(entry)
		r.Tests = append(r.Tests, entry)
	}
	for name, counts := range areas {
		r.Areas = append(r.Areas, Area{name, *counts})
	}
	slices.SortFunc(r.Areas, func(a, b Area) int { return strings.Compare(a.Name, b.Name) })
	return r
}

func (c *Counts) add(e Entry) {
	c.Tests++
	switch {
	case e.State == Passed:
		c.Passed++
	case e.State == Skipped:
		c.Skipped++
	case e.State == NotRun:
		c.NotRun++
	case e.Explanation != "":
		c.Explained++
	default:
		c.Unexplained++
	}
}

// Err returns an error if a failure has no explanation, or a test was not run.
func (r *Report) Err() error {
	switch {
	case r.Total.Unexplained > 0:
		return fmt.Errorf("%d tests failed without an explanation in hack/conformance/suite/known.yaml", r.Total.Unexplained)
	case r.Total.NotRun > 0:
		return fmt.Errorf("%d of %d tests were not run: repeat the command to continue", r.Total.NotRun, r.Total.Tests)
	}
	return nil
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// WriteTable writes the counts of each area, and the tests that did not pass with their reasons.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "Conformance tests of Kubernetes %s on the cluster %q\n\n", r.Version, r.Cluster)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "area\ttests\tpassed\tfailed, explained\tfailed\tskipped\tnot run\t")
	for _, a := range append(slices.Clone(r.Areas), Area{"all", r.Total}) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", a.Name, a.Tests, a.Passed, a.Explained, a.Unexplained, a.Skipped, a.NotRun)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	r.list(w, "Failed without an explanation", func(e Entry) (bool, string) {
		return e.State == Failed && e.Explanation == "", firstLine(e.Message) + "\n      " + e.Log
	})
	r.list(w, "Failed, explained", func(e Entry) (bool, string) { return e.State == Failed && e.Explanation != "", e.Explanation })
	r.list(w, "Skipped", func(e Entry) (bool, string) { return e.State == Skipped, firstLine(e.Message) })
	r.list(w, "Passed only when repeated", func(e Entry) (bool, string) {
		return e.State == Passed && e.Attempts > 1, fmt.Sprintf("%d attempts", e.Attempts)
	})
	r.list(w, "Slowest", r.slowest(5))
	for _, name := range r.Fixed {
		fmt.Fprintf(w, "\nThis test is listed in hack/conformance/suite/known.yaml, but passed: %s\n", name)
	}
	return nil
}

// list writes the tests that a function chooses, with its text.
func (r *Report) list(w io.Writer, title string, choose func(Entry) (bool, string)) {
	for _, e := range r.Tests {
		chosen, text := choose(e)
		if !chosen {
			continue
		}
		if title != "" {
			fmt.Fprintf(w, "\n%s\n", title)
			title = ""
		}
		fmt.Fprintf(w, "  %s\n      %s\n", e.Name, text)
	}
}

// slowest chooses the tests that took the longest time.
func (r *Report) slowest(count int) func(Entry) (bool, string) {
	durations := make([]time.Duration, 0, len(r.Tests))
	for _, e := range r.Tests {
		durations = append(durations, e.Duration)
	}
	slices.Sort(durations)
	least := durations[max(0, len(durations)-count)]
	return func(e Entry) (bool, string) {
		return e.Duration >= max(least, time.Second), e.Duration.Round(time.Second).String()
	}
}
