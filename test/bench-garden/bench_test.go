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
	r := results{
		Options:  options{Shoots: 1000, Projects: 100, Seeds: 50, Rest: 10 * time.Minute},
		Projects: 2 * time.Second, Created: 8 * time.Second, Scheduled: 9 * time.Second,
		Programs: []figures{{
			Name: "scheduler", Memory: 60 << 20, AtRest: measure.Tally{"get shoots": 2}, MemoryAfterRestart: 50 << 20,
			AfterRestart: measure.Tally{"list shoots": 1, "patch shoots": 3},
		}},
	}
	var text bytes.Buffer
	kit.Must(t, r.publish("markdown", &text))
	for _, want := range []string{
		"1,000 Shoots, 100 Projects, 50 Seeds", "scheduled in 9.0 s, 111 in a second", "requests in 10m0s at rest",
		"| scheduler | 2 ", "| 60.0 MiB | 1 ", "| 3 ", "3 patch shoots, 2 get shoots",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &text)
		}
	}
}

// TestOptions checks which arguments are refused.
func TestOptions(t *testing.T) {
	for want, args := range map[string][]string{
		"must be at least 1":  {"--seeds", "0"},
		"greater than 0":      {"--rest", "0s"},
		"--qps greater":       {"--qps", "0"},
		"unexpected argument": {"10"},
	} {
		if _, err := parseOptions(args, t.Output()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}
