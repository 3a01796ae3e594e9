package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/measure"
)

// TestReport checks the figures of a report.
func TestReport(t *testing.T) {
	r := results{
		Options: options{Rest: 5 * time.Minute},
		Turns: []turn{
			{
				Shoots: 10, New: 10, Created: 5 * time.Second, CreatedCPU: 8 * time.Second, Changed: []time.Duration{time.Second},
				Memory: measure.ProgramMemory{Resident: 100 << 20, Heap: 50 << 20},
			},
			{
				Shoots: 1000, New: 990, Created: 330 * time.Second, CreatedCPU: 99 * time.Second,
				Changed: []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond},
				Writes:  tallies{Garden: measure.Tally{"patch shoots/status": 990}, Seed: measure.Tally{"create secrets": 990, "get secrets": 5}},
				AtRest:  tallies{Seed: measure.Tally{"get secrets": 2}}, Probes: 10000, RestCPU: 30 * time.Second,
				Memory: measure.ProgramMemory{Resident: 199 << 20, Heap: 90 << 20},
			},
		},
	}
	var text bytes.Buffer
	kit.Must(t, r.publish("markdown", &text))
	for _, want := range []string{
		"| 10 Shoots ", "| 1,000 Shoots |", "created in a second ", "| 3.0 ", "| 100.0 ms ", "| 2.0 ", "| 200.0 ms ", "requests in 5m0s at rest", "| 10.0 % ", "| 102.4 KiB ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &text)
		}
	}
}

// TestOptions checks which arguments are refused.
func TestOptions(t *testing.T) {
	for want, args := range map[string][]string{
		"greater than --few":         {"--shoots", "10"},
		"--changes between 1":        {"--changes", "11"},
		"--rest greater":             {"--rest", "0s"},
		"--few must be at least 1":   {"--few", "0"},
		"unexpected argument \"10\"": {"10"},
	} {
		if _, err := parseOptions(args, t.Output()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}

// TestFind checks which hosts have an API server.
func TestFind(t *testing.T) {
	a := &apiServers{addresses: map[string]string{"shoot--dev--one": "127.0.0.1:4711"}}
	for host, want := range map[string]bool{
		"kube-apiserver.shoot--dev--one.svc": true, "kube-apiserver.shoot--dev--one.svc.cluster.local": true,
		"kube-apiserver.garden.svc": false, "example.org": false, "x.kube-apiserver.shoot--dev--one.svc": false,
	} {
		_, addresses, err := a.find(t.Context(), host)
		if found := len(addresses) == 1; found != want || found == errors.Is(err, forward.ErrNoRoute) {
			t.Errorf("%s: %v, %v, want found %t", host, addresses, err, want)
		}
	}
}
