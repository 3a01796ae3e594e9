package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// result is the result of a target.
type result struct {
	target
	// Seconds is how long inputs were tried, without the time for building.
	Seconds    float64 `json:"seconds"`
	Executions int64   `json:"executions"`
	// PerSecond is the mean number of executions per second.
	PerSecond float64 `json:"perSecond"`
	// Interesting is the number of new inputs that cover new code. Corpus is the current number of such inputs.
	Interesting int64 `json:"newInteresting"`
	Corpus      int64 `json:"corpus"`
	// Failure describes the failure, and Input names the file with the failing input. Both are empty on success.
	Failure string `json:"failure,omitempty"`
	Input   string `json:"input,omitempty"`
}

var (
	progress = regexp.MustCompile(`(?m)^fuzz: elapsed: (\S+), execs: (\d+) \([^)]*\)(?:, new interesting: (\d+) \(total: (\d+)\))?`)
	failing  = regexp.MustCompile(`Failing input written to (\S+)`)
	location = regexp.MustCompile(`(?m)^\s+(\w+_test\.go:\d+: .*|panic: .*|fuzzing process .*)$`)
)

// read parses the output of go test and its error.
func read(target target, output string, ended error) result {
	r := result{target: target}
	for _, match := range progress.FindAllStringSubmatch(output, -1) {
		if elapsed, err := time.ParseDuration(match[1]); err == nil {
			r.Seconds = elapsed.Seconds()
		}
		r.Executions = number(match[2])
		if match[4] != "" {
			r.Interesting, r.Corpus = number(match[3]), number(match[4])
		}
	}
	if r.Seconds > 0 {
		r.PerSecond = float64(r.Executions) / r.Seconds
	}
	if ended == nil {
		return r
	}
	r.Failure = ended.Error()
	if match := location.FindStringSubmatch(output); match != nil {
		r.Failure = match[1]
	}
	if match := failing.FindStringSubmatch(output); match != nil {
		r.Input = match[1]
	}
	return r
}

// number parses digits. It returns 0 if the number is too large.
func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// table returns the results in Markdown.
func table(results []result) string {
	var text strings.Builder
	text.WriteString("| target | time | executions | per second | new interesting inputs | corpus | result |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		outcome := "clean"
		switch {
		case r.Failure != "":
			outcome = strings.ReplaceAll(r.Failure, "|", "\\|")
		case r.Executions == 0:
			outcome = "nothing new was tried: its corpus takes longer"
		}
		if r.Input != "" {
			outcome += " (" + r.Input + ")"
		}
		fmt.Fprintf(&text, "| %s | %s | %d | %.0f | %d | %d | %s |\n", r.target, time.Duration(r.Seconds)*time.Second, r.Executions, r.PerSecond,
			r.Interesting, r.Corpus, outcome)
	}
	return text.String()
}
