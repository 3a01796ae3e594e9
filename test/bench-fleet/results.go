package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

// The targets.
const (
	wantedWrites       = 2 // of a bundle: a Secret and a ManagedResource
	wantedRestart      = 30 * time.Second
	wantedPass         = 5 * time.Millisecond
	wantedBytesOfOwner = 100 << 10
	wantedRest         = 10 * time.Minute
)

// phase holds the measurements of one phase.
type phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// Emitter and Manager are the requests of the flow and of the resource-manager, by verb and resource.
	Emitter measure.Tally `json:"emitter"`
	Manager measure.Tally `json:"manager"`
	// CPUSeconds is the CPU time of all involved programs, by program.
	CPUSeconds map[string]float64 `json:"cpuSeconds"`

	started time.Time
	usage   measure.Usage
}

func (b *bench) since(p phase) float64 { return time.Since(p.started).Seconds() }

// bundleWrites counts the writes of Secrets and ManagedResources by the flow. Reports and finalizers are patches
// of ConfigMaps.
func (p phase) bundleWrites() int {
	return p.Emitter["create secrets"] + p.Emitter["patch managedresources"] + p.Emitter["delete managedresources"]
}

// results are the figures of a run.
type results struct {
	Options options `json:"options"`
	CPUs    int     `json:"cpus"`
	// FirstMemory and AllMemory are the memory of the flow after a restart with the first sites and with all sites.
	FirstMemory memory `json:"firstMemory"`
	AllMemory   memory `json:"allMemory"`
	CreateFirst phase  `json:"createFirst"`
	Create      phase  `json:"create"`
	ChangeOne   phase  `json:"changeOne"`
	ChangeAll   phase  `json:"changeAll"`
	// BusyPassSeconds is the CPU time of the flow per pass while all sites change, including its requests and
	// watches.
	BusyPassSeconds float64 `json:"busyPassSeconds"`
	Restart         phase   `json:"restart"`
	// PassSeconds is the CPU time of the flow per pass, including the reading of all objects at the start.
	PassSeconds float64 `json:"passSeconds"`
	Rest        phase   `json:"rest"`
	ChangeCode  phase   `json:"changeCode"`
	// RolledAtOnce is the maximum number of ManagedResources that were rolling out at the same time.
	RolledAtOnce int   `json:"rolledAtOnce"`
	Delete       phase `json:"delete"`
	// Left counts the remaining objects of deleted sites.
	Left int   `json:"left"`
	Rows []row `json:"rows"`
}

// row is a row of the report.
type row struct {
	Figure string `json:"figure"`
	Wanted string `json:"wanted"`
	Value  string `json:"value"`
	// Pass is nil if there is no target, or if the run was too short for it.
	Pass *bool `json:"pass,omitempty"`
}

func (r row) mark() string {
	switch {
	case r.Pass == nil:
		return "–"
	case *r.Pass:
		return "pass"
	}
	return "FAIL"
}

// report returns the rows.
func (r *results) report() []row {
	owners := float64(r.Options.Owners)
	plain := func(figure, value string) row { return row{Figure: figure, Wanted: "–", Value: value} }
	judged := func(figure, wanted, value string, pass bool) row { return row{figure, wanted, value, &pass} }
	per := func(writes int) string { return fmt.Sprintf("%.2f", float64(writes)/owners) }
	ofAll := wantedWrites * r.Options.Bundles
	further := int64(r.Options.Owners - r.Options.first())
	memory := func(kind string, first, all int64) row {
		one := (all - first) / further
		return judged(kind+" of the flow for each further site, KiB", "≤ 100",
			fmt.Sprintf("%.1f", float64(one)/(1<<10)), one <= wantedBytesOfOwner)
	}
	created := r.CreateFirst.bundleWrites() + r.Create.bundleWrites()
	others := r.CreateFirst.Emitter.Writes() + r.Create.Emitter.Writes() - created
	atRest := r.Rest.Emitter.Total() + r.Rest.Manager.Total()
	rest := judged("at rest for "+r.Options.Rest.String()+": requests of the flow and the resource-manager", "0",
		fmt.Sprintf("%d and %d", r.Rest.Emitter.Total(), r.Rest.Manager.Total()), atRest == 0)
	if r.Options.Rest < wantedRest && atRest == 0 {
		rest.Pass = nil
	}
	return []row{
		plain("create: seconds until all report success", fmt.Sprintf("%.0f", r.CreateFirst.Seconds+r.Create.Seconds)),
		judged("create: writes of bundles, for a site", fmt.Sprint(ofAll), per(created), created == ofAll*r.Options.Owners),
		plain("create: other writes of the flow (reports, finalizer), for a site", per(others)),
		judged("one input of one site changed: writes of bundles", "2",
			fmt.Sprint(r.ChangeOne.bundleWrites()), r.ChangeOne.bundleWrites() == wantedWrites),
		plain("one input of one site changed: seconds until applied", fmt.Sprintf("%.2f", r.ChangeOne.Seconds)),
		judged("one input of each site changed: writes of bundles, for a site", "2", per(r.ChangeAll.bundleWrites()),
			r.ChangeAll.bundleWrites() == wantedWrites*r.Options.Owners),
		plain("one input of each site changed: seconds until applied", fmt.Sprintf("%.0f", r.ChangeAll.Seconds)),
		judged("flow restarted: writes", "0", fmt.Sprint(r.Restart.Emitter.Writes()), r.Restart.Emitter.Writes() == 0),
		judged("flow restarted: seconds until all sites are reconciled", "≤ 30",
			fmt.Sprintf("%.1f", r.Restart.Seconds), r.Restart.Seconds <= wantedRestart.Seconds()),
		plain("flow restarted: CPU time for a site (start, reading of its objects and a pass), ms", fmt.Sprintf("%.2f", 1000*r.PassSeconds)),
		judged("CPU time for a pass while all sites change, ms", "≤ 5",
			fmt.Sprintf("%.2f", 1000*r.BusyPassSeconds), r.BusyPassSeconds <= wantedPass.Seconds()),
		memory("live heap", r.FirstMemory.Heap, r.AllMemory.Heap),
		memory("resident memory", r.FirstMemory.Resident, r.AllMemory.Resident),
		rest,
		judged("program changed: most ManagedResources that roll out at a time",
			fmt.Sprintf("≤ %d", r.atOnce()), fmt.Sprint(r.RolledAtOnce), r.RolledAtOnce <= r.atOnce()),
		plain("program changed: seconds until all sites have changed", fmt.Sprintf("%.0f", r.ChangeCode.Seconds)),
		judged("deleted: objects left", "0", fmt.Sprint(r.Left), r.Left == 0),
		plain("deleted: seconds", fmt.Sprintf("%.0f", r.Delete.Seconds)),
	}
}

// atOnce is the maximum number of ManagedResources that may roll out at the same time: a site is rolled out as a
// whole, even with a smaller budget.
func (r *results) atOnce() int { return max(r.Options.Budget, r.Options.Bundles) }

// publish writes the results to out and to the requested file.
func (r *results) publish(opts options, out io.Writer) error {
	r.CPUs, r.Rows = runtime.NumCPU(), r.report()
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
	if opts.Output == "json" {
		_, err = out.Write(content)
		return err
	}
	_, err = io.WriteString(out, r.text(opts.Output == "markdown"))
	return err
}

func (r *results) text(markdown bool) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s sites of %d bundles, %d workers, budget %d, %d CPUs\n\n",
		measure.Thousands(r.Options.Owners), r.Options.Bundles, r.Options.Workers, r.Options.Budget, r.CPUs)
	lines := [][]string{{"figure", "wanted", "measured", ""}}
	for _, row := range r.Rows {
		lines = append(lines, []string{row.Figure, row.Wanted, row.Value, row.mark()})
	}
	text.WriteString(measure.Table(lines, markdown) + "\n")
	bullet := ""
	if markdown {
		bullet = "* "
	}
	for _, p := range []phase{r.CreateFirst, r.Create, r.ChangeOne, r.ChangeAll, r.Restart, r.Rest, r.ChangeCode, r.Delete} {
		fmt.Fprintf(&text, "%s%s: %.1fs; CPU: %s; flow: %s; resource-manager: %s\n",
			bullet, p.Name, p.Seconds, measure.CPUText(p.CPUSeconds), p.Emitter, p.Manager)
	}
	fmt.Fprintf(&text, "%smemory of the flow with %d and %d sites: live heap %s and %s, resident %s and %s\n",
		bullet, r.Options.first(), r.Options.Owners,
		measure.Mebibytes(r.FirstMemory.Heap), measure.Mebibytes(r.AllMemory.Heap),
		measure.Mebibytes(r.FirstMemory.Resident), measure.Mebibytes(r.AllMemory.Resident))
	return text.String()
}
