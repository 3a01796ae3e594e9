package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/measure"
)

// TestReport checks the figures of a report.
func TestReport(t *testing.T) {
	r := results{Options: options{Hosts: 3, Connections: 100}, Turns: []turn{
		{
			Shoots: 10, Start: time.Second, NewHosts: []time.Duration{3e6, 1e6, 2e6}, Connections: []time.Duration{1e6},
			Memory: measure.ProgramMemory{Resident: 20 << 20, Heap: 10 << 20}, WithConnections: measure.ProgramMemory{Resident: 21 << 20},
		},
		{
			Shoots: 1034, Start: 2 * time.Second, NewHosts: []time.Duration{4e6, 4e6, 4e6}, Connections: []time.Duration{1e6},
			Memory: measure.ProgramMemory{Resident: 28 << 20, Heap: 15 << 20}, WithConnections: measure.ProgramMemory{Resident: 29 << 20},
		},
	}}
	var text bytes.Buffer
	kit.Must(t, r.publish("table", &text))
	for _, want := range []string{
		"until a new host answers, median          2.0 ms     4.0 ms        2.00", "heap in use                               10.0 MiB   15.0 MiB      1.50",
		"resident memory for each further Shoot               8.0 KiB", "resident memory for each open connection  10.2 KiB   10.2 KiB",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &text)
		}
	}
}

// TestOptions checks which arguments are refused.
func TestOptions(t *testing.T) {
	for want, args := range map[string][]string{
		"must be at least 1":  {"--hosts", "0"},
		"greater than --few":  {"--shoots", "10"},
		"unexpected argument": {"10"},
	} {
		if _, err := parseOptions(args, t.Output()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}
