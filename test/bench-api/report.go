package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// The names of the two sides.
const (
	apiServer      = "API server"
	customResource = "CRD"
)

// results are the figures of a run.
type results struct {
	Options options  `json:"options"`
	CPUs    int      `json:"cpus"`
	Figures []figure `json:"figures"`
}

// figure is one measure of both sides.
type figure struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// APIServer and CRD are the medians of all turns.
	APIServer float64 `json:"apiServer"`
	CRD       float64 `json:"crd"`
	// Ratio is the API server's value divided by the CRD's.
	Ratio  float64 `json:"ratio"`
	Wanted string  `json:"wanted"`
	Met    bool    `json:"met"`
	// Turns are the values of each turn, those of the API server first.
	Turns [2][]float64 `json:"turns"`
}

// add adds the measurements of a phase and judges them.
func (r *results) add(p phase, measured [2][]float64) {
	f := figure{Name: p.name, Unit: p.unit, APIServer: median(measured[0]), CRD: median(measured[1]), Turns: measured}
	f.Ratio = f.APIServer / f.CRD
	switch {
	case p.more:
		f.Wanted, f.Met = "at least the CRD's", f.APIServer >= f.CRD
	case p.allowance > 0:
		f.Wanted, f.Met = fmt.Sprintf("at most the CRD's + %g %s", p.allowance, p.unit), f.APIServer <= f.CRD+p.allowance
	default:
		f.Wanted, f.Met = "at most the CRD's", f.APIServer <= f.CRD
	}
	r.Figures = append(r.Figures, f)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// publish writes the results in a form: table, markdown or json.
func (r *results) publish(form string, out io.Writer) error {
	r.CPUs = runtime.NumCPU()
	if form == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	lines := [][]string{{"figure", "unit", apiServer, customResource, "ratio", "wanted", "met"}}
	if form == "markdown" {
		lines = append(lines, slices.Repeat([]string{"---"}, len(lines[0])))
	}
	for _, f := range r.Figures {
		met := "no"
		if f.Met {
			met = "yes"
		}
		lines = append(lines, []string{f.Name, f.Unit, number(f.APIServer), number(f.CRD), fmt.Sprintf("%.2f", f.Ratio), f.Wanted, met})
	}
	fmt.Fprintf(out, "%d Shoots, %d writers, %d watchers, medians of %d turns, %d CPUs\n\n",
		r.Options.Shoots, r.Options.Writers, r.Options.Watchers, r.Options.Turns, r.CPUs)
	if form == "markdown" {
		for _, line := range lines {
			fmt.Fprintf(out, "| %s |\n", strings.Join(line, " | "))
		}
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(table, strings.Join(line, "\t"))
	}
	return table.Flush()
}

// number formats a value with the relevant number of digits.
func number(value float64) string {
	if value < 100 {
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.0f", value)
}
