package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

// results are the figures of a run.
type results struct {
	Options options `json:"options"`
	CPUs    int     `json:"cpus"`
	// Projects is the time until all Projects are ready, Created until all Shoots are created, and Scheduled the time from the start of the
	// scheduler until all of them have a Seed.
	Projects  time.Duration `json:"projects"`
	Created   time.Duration `json:"created"`
	Scheduled time.Duration `json:"scheduled"`
	// Create and Change are the medians of requests for one Shoot, while nothing else is requested.
	Create   time.Duration `json:"create"`
	Change   time.Duration `json:"change"`
	Programs []figures     `json:"programs"`
}

// figures are those of one program. Memory is resident, in bytes.
type figures struct {
	Name               string        `json:"name"`
	AtRest             measure.Tally `json:"atRest"`
	Memory             int64         `json:"memory"`
	AfterRestart       measure.Tally `json:"afterRestart"`
	MemoryAfterRestart int64         `json:"memoryAfterRestart"`
}

// publish writes the results in a form: table, markdown or json.
func (r *results) publish(form string, out io.Writer) error {
	r.CPUs = runtime.NumCPU()
	if form == "json" {
		return measure.Encode(out, r)
	}
	_, err := fmt.Fprintf(out, "%s Shoots, %d Projects, %d Seeds, %d CPUs: Projects ready after %.1f s; Shoots created in %.1f s, scheduled in %.1f s, %.0f in a second\n"+
		"one after the other: a Shoot is created in %.1f ms, and changed in %.1f ms\n\n%s",
		measure.Thousands(r.Options.Shoots), r.Options.Projects, r.Options.Seeds, r.CPUs, r.Projects.Seconds(), r.Created.Seconds(),
		r.Scheduled.Seconds(), float64(r.Options.Shoots)/r.Scheduled.Seconds(), r.Create.Seconds()*1000, r.Change.Seconds()*1000, measure.Table(r.lines(), form == "markdown"))
	return err
}

// lines returns the lines of the table.
func (r *results) lines() [][]string {
	lines := [][]string{{"program", fmt.Sprintf("requests in %s at rest", r.Options.Rest), "memory", "after a restart: reads", "writes", "memory", "requests"}}
	for _, one := range r.Programs {
		lines = append(lines, []string{
			one.Name, fmt.Sprint(one.AtRest.Total()), measure.Mebibytes(one.Memory),
			fmt.Sprint(one.AfterRestart.Total() - one.AfterRestart.Writes()), fmt.Sprint(one.AfterRestart.Writes()),
			measure.Mebibytes(one.MemoryAfterRestart), one.AtRest.Add(one.AfterRestart.OnlyWrites()).String(),
		})
	}
	return lines
}
