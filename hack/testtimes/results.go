package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// slowTest is the time in seconds from which on a test is listed.
const slowTest = 5

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// subject is a test, or a package if the test is empty.
type subject struct{ pkg, test string }

// result is the end of a test or of a package.
type result struct {
	subject
	seconds float64
	action  string
	cached  bool
}

// results are the ends of all packages and tests.
type results struct {
	ended []result
	// output of those that have not ended.
	output map[subject][]string
	// failures has the messages of each failed test.
	failures []string
	// broken are the packages that ended before all their tests.
	broken map[string]bool
}

// Limits of the messages that are repeated at the end.
const (
	mostMessages  = 20
	longestOutput = 600
)

// message matches a line that testing.T has written, after the position of the call.
var message = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// read reads the events, and writes the results of packages and the output of failed tests. Lines that are not events are
// written as they are.
func (r *results) read(events io.Reader, out io.Writer) error {
	r.output, r.broken = map[subject][]string{}, map[string]bool{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			_, _ = out.Write(line)
		default:
			r.add(e, out)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of go test: %w", err)
		}
	}
}

func (r *results) add(e event, out io.Writer) {
	s := subject{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "output":
		r.output[s] = append(r.output[s], e.Output)
	case "pass", "fail", "skip":
		r.end(result{subject: s, seconds: e.Elapsed, action: e.Action}, out)
	}
}

// end records the end of a test or of a package, and writes what a reader should see of it.
func (r *results) end(ended result, out io.Writer) {
	output := r.output[ended.subject]
	delete(r.output, ended.subject)
	for _, line := range output {
		isResult := strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "FAIL\t")
		if ended.test == "" && isResult && strings.Contains(line, "(cached)") {
			ended.cached = true
		}
		if ended.action == "fail" || ended.test == "" && isResult {
			fmt.Fprint(out, line)
		}
	}
	r.ended = append(r.ended, ended)
	if ended.test != "" && ended.action == "fail" {
		r.failures = append(r.failures, summary(ended, output)...)
	}
	if ended.test != "" || ended.action != "fail" {
		return
	}
	for s, lines := range r.output { // tests that have not ended: the package has panicked or timed out
		if s.pkg == ended.pkg {
			r.broken[s.pkg] = true
			fmt.Fprint(out, strings.Join(lines, ""))
			delete(r.output, s)
		}
	}
}

// summary returns the messages of a failed test without its logs, which hide them: a header and at most mostMessages lines.
func summary(ended result, output []string) []string {
	lines := []string{fmt.Sprintf("%s %s (%.1f s)\n", ended.pkg, ended.test, ended.seconds)}
	for _, line := range output {
		if !message.MatchString(line) || len(lines) > mostMessages {
			continue
		}
		if line = strings.TrimRight(line, "\n"); len(line) > longestOutput {
			line = line[:longestOutput] + " …"
		}
		lines = append(lines, line+"\n")
	}
	return lines
}

// packageTimes returns a line for each package that has tests, the slowest first.
func (r *results) packageTimes() []string {
	return r.lines(func(one result) bool { return one.test == "" && one.action != "skip" })
}

// testTimes returns a line for each slow test, the slowest first. The time of a test includes that of its subtests.
func (r *results) testTimes() []string {
	return r.lines(func(one result) bool { return one.test != "" && one.seconds >= slowTest })
}

func (r *results) lines(isWanted func(result) bool) []string {
	var wanted []result
	for _, one := range r.ended {
		if isWanted(one) {
			wanted = append(wanted, one)
		}
	}
	slices.SortStableFunc(wanted, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	lines := make([]string, 0, len(wanted))
	for _, one := range wanted {
		note := ""
		if one.cached {
			note = " cached"
		}
		lines = append(lines, fmt.Sprintf("%8.1f s  %s\n", one.seconds, strings.TrimSpace(one.pkg+" "+one.test)+note))
	}
	return lines
}

// failed returns a line for each package that failed: the package, and the pattern for -run that selects its failed tests. There is no pattern if
// the package did not build, has panicked or timed out: all its tests are to be repeated.
func (r *results) failed() []string {
	tests := map[string][]string{}
	for _, one := range r.ended {
		if one.test != "" && one.action == "fail" && !strings.Contains(one.test, "/") {
			tests[one.pkg] = append(tests[one.pkg], one.test)
		}
	}
	var lines []string
	for _, one := range r.ended {
		if one.test != "" || one.action != "fail" {
			continue
		}
		line := one.pkg
		if names := tests[one.pkg]; len(names) > 0 && !r.broken[one.pkg] {
			line += " ^(" + strings.Join(names, "|") + ")$"
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
