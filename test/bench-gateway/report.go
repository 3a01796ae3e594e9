package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

// results are the figures of a run, with few Shoots and with many.
type results struct {
	Options options `json:"options"`
	CPUs    int     `json:"cpus"`
	Turns   []turn  `json:"turns"`
}

// turn are the measurements of one process of the gateway.
type turn struct {
	Shoots int `json:"shoots"`
	// Start is the time until the process is ready: it knows all routes.
	Start time.Duration `json:"start"`
	// NewHosts are the times from the creation of a route until its host answers, and Connections those of connections to known hosts.
	NewHosts    []time.Duration `json:"newHosts"`
	Connections []time.Duration `json:"connections"`
	// Memory is that without connections, and WithConnections that with the connections of the options.
	Memory          measure.ProgramMemory `json:"memory"`
	WithConnections measure.ProgramMemory `json:"withConnections"`
}

// publish writes the results in a form: table, markdown or json.
func (r *results) publish(form string, out io.Writer) error {
	r.CPUs = runtime.NumCPU()
	if form == "json" {
		return measure.Encode(out, r)
	}
	_, err := fmt.Fprintf(out, "%d new hosts, %d connections, %d CPUs\n\n%s", r.Options.Hosts, r.Options.Connections, r.CPUs,
		measure.Table(r.lines(), form == "markdown"))
	return err
}

// lines returns the lines of the table.
func (r *results) lines() [][]string {
	few, many := r.Turns[0], r.Turns[len(r.Turns)-1]
	shoots := func(t turn) string { return measure.Thousands(t.Shoots) + " Shoots" }
	lines := [][]string{{"figure", shoots(few), shoots(many), "ratio"}}
	add := func(name string, of func(turn) time.Duration) {
		a, b := of(few), of(many)
		lines = append(lines, []string{name, milliseconds(a), milliseconds(b), fmt.Sprintf("%.2f", float64(b)/float64(a))})
	}
	add("until a new host answers, median", func(t turn) time.Duration { return quantile(t.NewHosts, 0.5) })
	add("until a new host answers, 95 %", func(t turn) time.Duration { return quantile(t.NewHosts, 0.95) })
	add("until a connection answers, median", func(t turn) time.Duration { return quantile(t.Connections, 0.5) })
	add("until a started gateway is ready", func(t turn) time.Duration { return t.Start })
	memory := func(name string, of func(turn) int64) {
		a, b := of(few), of(many)
		lines = append(lines, []string{name, measure.Mebibytes(a), measure.Mebibytes(b), fmt.Sprintf("%.2f", float64(b)/float64(a))})
	}
	memory("resident memory", func(t turn) int64 { return t.Memory.Resident })
	memory("heap in use", func(t turn) int64 { return t.Memory.Heap })
	more := int64(many.Shoots - few.Shoots)
	return append(lines,
		[]string{"resident memory for each further Shoot", "", kibibytes((many.Memory.Resident - few.Memory.Resident) / more), ""},
		[]string{
			"resident memory for each open connection", kibibytes(r.perConnection(few)), kibibytes(r.perConnection(many)), "",
		},
	)
}

func (r *results) perConnection(t turn) int64 {
	return (t.WithConnections.Resident - t.Memory.Resident) / int64(r.Options.Connections)
}

func milliseconds(of time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(of)/float64(time.Millisecond))
}

func kibibytes(bytes int64) string { return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10)) }

// quantile returns the smallest of the times that a share of them does not exceed.
func quantile(times []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
