package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/test/measure"
)

var header = []string{"figure", "wanted", "measured", "", "gardener-resource-manager", "Flux"}

// publish judges the results and writes them to out and to the requested file.
func (r *results) publish(opts options, base *results, out io.Writer) error {
	r.Rows = r.report(base)
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	content = append(content, '\n')
	if opts.JSON != "" {
		if err := os.WriteFile(opts.JSON, content, 0o600); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	text := string(content)
	if opts.Output != "json" {
		text = r.title() + "\n\n" + table(r.Rows, opts.Output == "markdown") + "\n" + r.details(opts.Output == "markdown")
	}
	_, err = io.WriteString(out, text)
	return err
}

func (r *results) title() string {
	return fmt.Sprintf("resource-manager %s on Kubernetes %s, %d CPUs: %d ManagedResources with %d objects each, %d workers",
		r.Version, r.Kubernetes, r.CPUs, r.Options.ManagedResources, r.Options.Objects, r.Options.Workers)
}

// table aligns the rows.
func table(rows []row, markdown bool) string {
	lines := [][]string{header}
	for _, row := range rows {
		lines = append(lines, []string{row.Figure, row.Wanted, row.Value, row.mark(), row.Gardener, row.Flux})
	}
	return measure.Table(lines, markdown)
}

// details describe the origin of the rows.
func (r *results) details(markdown bool) string {
	var text strings.Builder
	bullet := ""
	if markdown {
		bullet = "* "
	}
	say := func(format string, args ...any) { fmt.Fprintf(&text, bullet+format+"\n", args...) }
	for _, limits := range r.Limits {
		sayPhase(say, limits.Create)
		sayPhase(say, limits.Update)
	}
	r.sayShares(say, phaseCreate, createOf, r.Creates)
	r.sayShares(say, phaseUpdate, updateOf, r.turnUpdates())
	for _, phase := range r.phases() {
		sayPhase(say, phase)
		if len(phase.Requests) > 0 {
			say("%s: requests: %s", phase.Name, phase.Requests)
		}
	}
	if r.Restart != nil {
		say("restart: ready after %.1fs, last request after %.1fs: %s", r.Restart.ReadySeconds, r.Restart.IdleSeconds, r.Restart.Requests)
	}
	if r.Drift != nil {
		say("drift: %d of %d ConfigMaps corrected: %s", r.Drift.PutBack, r.Drift.Changed, r.Drift.Requests)
	}
	if r.RestBytes > 0 {
		say("memory at rest: %s, Go's heap in use: %s", measure.Mebibytes(r.RestBytes), measure.Mebibytes(r.HeapBytes))
	}
	say("peak memory: %s", measure.Mebibytes(r.PeakBytes))
	if warning := r.warning(); warning != "" {
		say("%s", warning)
	}
	return text.String()
}

// sayShares prints the shares of the limit in each turn, by elapsed time and by CPU time. Other busy programs
// affect the latter less.
func (r *results) sayShares(say func(string, ...any), name string, limitOf func(limits) phase, measured []phase) {
	shares, ofCPU := r.shares(limitOf, measured, phase.rate), r.shares(limitOf, measured, phase.rateOfCPU)
	if len(shares) > 0 {
		say("%s: %.2f of the limit by turns, %.2f by CPU time", name, shares, ofCPU)
	}
}

// phases returns the phases of the resource-manager.
func (r *results) phases() []phase {
	phases := slices.Concat(r.Creates, r.Updates)
	for _, phase := range []*phase{r.Rest, r.Delete} {
		if phase != nil {
			phases = append(phases, *phase)
		}
	}
	return phases
}

func sayPhase(say func(string, ...any), p phase) {
	rates := ""
	if p.Objects > 0 {
		rates = fmt.Sprintf("%.0f objects/s, %.0f objects per second of CPU, ", p.rate(), p.rateOfCPU())
	}
	say("%s: %.1fs, %sCPU: %s; other programs kept %.2f CPUs busy", p.Name, p.Seconds, rates, measure.CPUText(p.CPUSeconds), p.ForeignCPUs)
}

// warning returns the reasons to doubt the figures.
func (r *results) warning() string {
	doubts := slices.Concat(r.doubtsOfShare(createOf, r.Creates), r.doubtsOfShare(updateOf, r.turnUpdates()), r.doubtsOfDrift())
	if len(doubts) == 0 {
		return ""
	}
	return "WARNING: measure the rows with a question mark again: " + strings.Join(doubts, "; ")
}
