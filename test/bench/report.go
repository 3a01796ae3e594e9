package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

// The targets.
const (
	wantedShare         = 0.85
	wantedCreate        = 1.4
	wantedUpdate        = 1.2
	wantedRest          = 130 * time.Second
	wantedRestCPU       = 0.5
	wantedP50           = 0.05
	wantedP99           = 0.5
	wantedDelete        = 1.3
	wantedBytes         = 64 << 20
	wantedBytesAt       = 3000 // objects
	wantedBytesOfObject = 2 << 10
)

// row is a row of the report.
type row struct {
	Figure string `json:"figure"`
	Wanted string `json:"wanted"`
	Value  string `json:"value"`
	// Pass is nil if the figure was not measured, or not under the conditions of its target.
	Pass *bool `json:"pass,omitempty"`
	// Doubtful is set if the machine was disturbed.
	Doubtful bool `json:"doubtful,omitempty"`
	// Gardener and Flux are known figures of gardener-resource-manager and Flux. They are not measured here.
	Gardener string `json:"gardener"`
	Flux     string `json:"flux"`
}

func (r row) mark() string {
	mark := "FAIL"
	switch {
	case r.Pass == nil:
		return "–"
	case *r.Pass:
		mark = "pass"
	}
	if r.Doubtful {
		mark += "?"
	}
	return mark
}

// verdict is a value and whether it meets its target.
type verdict struct {
	value    string
	pass     *bool
	doubtful bool
}

// notMeasured is the verdict of an omitted figure.
var notMeasured = verdict{value: "–"}

func judge(value string, pass bool) verdict { return verdict{value: value, pass: &pass} }

func atMost(value, most float64) verdict {
	return judge(fmt.Sprintf("%.2f", value), value <= most)
}

// report returns the rows.
func (r *results) report(base *results) []row {
	objects := r.Options.total()
	rest := r.Options.Rest.String()
	line := func(figure, wanted string, verdict verdict, gardener, flux string) row {
		return row{figure, wanted, verdict.value, verdict.pass, verdict.doubtful, gardener, flux}
	}
	return []row{
		line("create: objects/s, share of the limit", "≥ 0.85", r.share(createOf, r.Creates), "0.61", "0.23"),
		line("update: objects/s, share of the limit", "≥ 0.85", r.share(updateOf, r.turnUpdates()), "0.45", "0.16"),
		line("create: requests per object", "≤ 1.4", perObject(r.Creates, wantedCreate), "1.93", "4.1"),
		line("update: requests per object", "≤ 1.2", perObject(r.Updates, wantedUpdate), "1.81", "4.4"),
		line("at rest for "+rest+": requests", "0", r.restRequests(), "3,256", "18,676"),
		line("at rest for "+rest+": own CPU, s", "≤ 0.5", r.restCPU(), "10.9", "111"),
		line("changed ConfigMap corrected, p50, s", "≤ 0.05",
			r.putBack(func(d *driftResult) *float64 { return d.P50Seconds }, wantedP50), "20.8", "38.9"),
		line("changed ConfigMap corrected, p99, s", "≤ 0.5",
			r.putBack(func(d *driftResult) *float64 { return d.P99Seconds }, wantedP99), "59.9", "78.1"),
		line("restart, nothing changed: requests", "no write, no get", r.restarted(), "1,513", "> 5,037"),
		line("delete all: requests per object", "≤ 1.3", perObject(phasesOf(r.Delete), wantedDelete), "3.7", "2.4"),
		line("resident memory at "+measure.Thousands(objects)+" objects, MiB", "≤ 64 at 3,000", r.resident(), "111", "184"),
		line("growth of resident memory per object, KiB", "≤ 2", r.growth(base), "", ""),
	}
}

// turnUpdates are the updates between two measurements of the limit.
func (r *results) turnUpdates() []phase { return r.Updates[:min(len(r.Creates), len(r.Updates))] }

func phasesOf(p *phase) []phase {
	if p == nil {
		return nil
	}
	return []phase{*p}
}

// share judges the median of the turns' shares of the limit.
func (r *results) share(limitOf func(limits) phase, measured []phase) verdict {
	shares := r.shares(limitOf, measured, phase.rate)
	if len(shares) == 0 {
		return notMeasured
	}
	value := median(shares)
	verdict := judge(fmt.Sprintf("%.2f", value), value >= wantedShare)
	verdict.doubtful = len(r.doubtsOfShare(limitOf, measured)) > 0
	return verdict
}

// shares returns the rate of each turn divided by the rate of the limits before and after it.
func (r *results) shares(limitOf func(limits) phase, measured []phase, rate func(phase) float64) []float64 {
	var shares []float64
	for i, turn := range measured {
		var around []phase
		for _, limits := range r.Limits[min(i, len(r.Limits)):min(i+2, len(r.Limits))] {
			around = append(around, limitOf(limits))
		}
		if limit := rate(sumOf(around)); limit > 0 {
			shares = append(shares, rate(turn)/limit)
		}
	}
	return shares
}

func perObject(phases []phase, most float64) verdict {
	if len(phases) == 0 {
		return notMeasured
	}
	sum := sumOf(phases)
	objects := float64(sum.Objects)
	result := atMost(math.Round(100*float64(sum.Requests.Total())/objects)/100, most) // as displayed
	if health := sum.Requests.Health(); health > 0 {
		result.value += fmt.Sprintf(", %.2f of them for health", float64(health)/objects)
	}
	return result
}

func (r *results) restRequests() verdict {
	if r.Rest == nil {
		return notMeasured
	}
	total := r.Rest.Requests.Total()
	return r.judgeRest(measure.Thousands(total), total == 0)
}

func (r *results) restCPU() verdict {
	if r.Rest == nil {
		return notMeasured
	}
	cpu := r.Rest.ManagerCPUSeconds
	return r.judgeRest(fmt.Sprintf("%.2f", cpu), cpu <= wantedRestCPU)
}

// judgeRest judges only if the rest was long enough to include events that happen once a minute.
func (r *results) judgeRest(value string, pass bool) verdict {
	if r.Options.Rest < wantedRest {
		return verdict{value: value}
	}
	return judge(value, pass)
}

func (r *results) putBack(of func(*driftResult) *float64, most float64) verdict {
	if r.Drift == nil {
		return notMeasured
	}
	verdict := judge(fmt.Sprintf("not within %.0f", r.Drift.TimeoutSeconds), false)
	if seconds := of(r.Drift); seconds != nil {
		verdict = judge(fmt.Sprintf("%.3f", *seconds), *seconds <= most)
	}
	verdict.doubtful = len(r.doubtsOfDrift()) > 0
	return verdict
}

// restarted judges the requests after a restart: lists, watches and discovery are needed to read the current
// state.
func (r *results) restarted() verdict {
	if r.Restart == nil {
		return notMeasured
	}
	verbs := r.Restart.Requests.ByVerb()
	writes := r.Restart.Requests.Writes()
	texts := []string{measure.Thousands(r.Restart.Requests.Total()) + ":"}
	for _, verb := range []string{measure.VerbDiscover, "list", "get"} {
		texts = append(texts, fmt.Sprintf("%d %s,", verbs[verb], verb))
	}
	texts = append(texts, fmt.Sprintf("%d write", writes))
	return judge(strings.Join(texts, " "), writes == 0 && verbs["get"] == 0)
}

func (r *results) resident() verdict {
	if r.RestBytes == 0 {
		return notMeasured
	}
	value := fmt.Sprintf("%.1f", float64(r.RestBytes)/(1<<20))
	if r.Options.total() != wantedBytesAt {
		return verdict{value: value}
	}
	return judge(value, r.RestBytes <= wantedBytes)
}

func (r *results) growth(base *results) verdict {
	if base == nil || r.RestBytes == 0 || base.Options.total() >= r.Options.total() {
		return notMeasured
	}
	grown := float64(r.RestBytes-base.RestBytes) / float64(r.Options.total()-base.Options.total())
	return judge(fmt.Sprintf("%.2f", grown/(1<<10)), grown <= wantedBytesOfObject)
}
