package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

// results are the figures of a run, with few Shoots and with many.
type results struct {
	Options options `json:"options"`
	CPUs    int     `json:"cpus"`
	Turns   []turn  `json:"turns"`
}

// tallies are the requests to the garden and to the Seed.
type tallies struct {
	Garden measure.Tally `json:"garden"`
	Seed   measure.Tally `json:"seed"`
}

func (t tallies) total() int  { return t.Garden.Total() + t.Seed.Total() }
func (t tallies) writes() int { return t.Garden.Writes() + t.Seed.Writes() }

// turn are the measurements with a number of Shoots.
type turn struct {
	// Shoots is the number of all Shoots, and New that of those which were created in this turn.
	Shoots int `json:"shoots"`
	New    int `json:"new"`
	// Created is the time from the first request until all new Shoots have succeeded, CreatedCPU the CPU time of gardenlet, and Writes are its
	// requests.
	Created    time.Duration `json:"created"`
	CreatedCPU time.Duration `json:"createdCPU"`
	Writes     tallies       `json:"writes"`
	// Changed are the times, in ascending order, from a change of a Shoot until gardenlet has written it into the Seed.
	Changed []time.Duration `json:"changed"`
	// Ready is the time from the start of gardenlet until it is ready, Settled the time after that until its last request, SettledCPU the CPU time
	// of the process until then, and AfterRestart are its requests.
	Ready        time.Duration `json:"ready"`
	Settled      time.Duration `json:"settled"`
	SettledCPU   time.Duration `json:"settledCPU"`
	AfterRestart tallies       `json:"afterRestart"`
	// AtRest are the requests to the garden and the Seed while nothing changes, and Probes those to the API servers of Shoots. RestCPU is the CPU
	// time of gardenlet meanwhile, and Memory its memory at the end.
	AtRest  tallies               `json:"atRest"`
	Probes  int64                 `json:"probes"`
	RestCPU time.Duration         `json:"restCPU"`
	Memory  measure.ProgramMemory `json:"memory"`
}

// publish writes the results in a form: table, markdown or json.
func (r *results) publish(form string, out io.Writer) error {
	r.CPUs = runtime.NumCPU()
	if form == "json" {
		return measure.Encode(out, r)
	}
	_, err := fmt.Fprintf(out, "%d CPUs, on which the garden and the Seed run, too\n\n%s", r.CPUs, measure.Table(r.lines(), form == "markdown"))
	return err
}

// lines returns the lines of the table.
func (r *results) lines() [][]string {
	few, many := r.Turns[0], r.Turns[len(r.Turns)-1]
	shoots := func(t turn) string { return measure.Thousands(t.Shoots) + " Shoots" }
	lines := [][]string{{"figure", shoots(few), shoots(many)}}
	add := func(name string, of func(turn) string) { lines = append(lines, []string{name, of(few), of(many)}) }
	each := func(total time.Duration, count int) string {
		return fmt.Sprintf("%.1f ms", float64(total)/float64(time.Millisecond)/float64(count))
	}
	add("created in a second", func(t turn) string { return fmt.Sprintf("%.1f", float64(t.New)/t.Created.Seconds()) })
	add("CPU time for each creation", func(t turn) string { return each(t.CreatedCPU, t.New) })
	add("writes for each creation", func(t turn) string { return fmt.Sprintf("%.1f", float64(t.Writes.writes())/float64(t.New)) })
	add("until a change is written, median", func(t turn) string { return each(t.Changed[len(t.Changed)/2], 1) })
	add("until a started gardenlet is ready", func(t turn) string { return fmt.Sprintf("%.1f s", t.Ready.Seconds()) })
	add("and then until its last request", func(t turn) string { return fmt.Sprintf("%.1f s", max(t.Settled, 0).Seconds()) })
	add("CPU time of that", func(t turn) string { return fmt.Sprintf("%.1f s", t.SettledCPU.Seconds()) })
	add("requests of that", func(t turn) string { return measure.Thousands(t.AfterRestart.total()) })
	add("writes of that", func(t turn) string { return measure.Thousands(t.AfterRestart.writes()) })
	add(fmt.Sprintf("requests in %s at rest", r.Options.Rest), func(t turn) string { return measure.Thousands(t.AtRest.total()) })
	add("probes of API servers meanwhile", func(t turn) string { return measure.Thousands(int(t.Probes)) })
	add("CPU at rest", func(t turn) string { return fmt.Sprintf("%.1f %%", 100*t.RestCPU.Seconds()/r.Options.Rest.Seconds()) })
	add("resident memory", func(t turn) string { return measure.Mebibytes(t.Memory.Resident) })
	add("heap in use", func(t turn) string { return measure.Mebibytes(t.Memory.Heap) })
	add("stacks of goroutines", func(t turn) string { return measure.Mebibytes(t.Memory.Stacks) })
	more := int64(many.Shoots - few.Shoots)
	return append(lines, []string{
		"resident memory for each further Shoot", "", fmt.Sprintf("%.1f KiB", float64((many.Memory.Resident-few.Memory.Resident)/more)/(1<<10)),
	})
}
