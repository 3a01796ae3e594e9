package suite

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is the state of a test.
type State string

// The states of tests. A test that was not run has no result, for example because the run was interrupted or could not start.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
	NotRun  State = "not run"
)

// Result is the result of a test.
type Result struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Duration is the time that the test took.
	Duration time.Duration `json:"duration"`
	// Message is the error of a failed test, or why a test was skipped or not run.
	Message string `json:"message,omitempty"`
	// Attempts is the number of times that the test has run.
	Attempts int `json:"attempts"`
	// Log is the path of the log if the test did not pass.
	Log string `json:"log,omitempty"`
}

type junitReport struct {
	Cases []junitCase `xml:"testsuite>testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Status  string     `xml:"status,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure"`
	Error   *junitText `xml:"error"`
	Skipped *junitText `xml:"skipped"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// text returns the message of the case.
func (c junitCase) text() string {
	for _, t := range []*junitText{c.Failure, c.Error, c.Skipped} {
		if t == nil {
			continue
		}
		if text := strings.TrimSpace(t.Text); text != "" {
			return text
		}
		return strings.TrimSpace(t.Message)
	}
	return ""
}

const (
	// specPrefix marks tests in a report, in contrast to preparations and cleanups of the suite.
	specPrefix = "[It] "
	// skipPrefix precedes the reason in the message of a test that skipped itself. Other skipped tests have no reason: they were not
	// selected, or the suite ended before them.
	skipPrefix = "skipped - "
)

// ReadReport reads the results of tests from the JUnit report of a process that ran them. Tests that the report does not contain, or
// that the process did not reach, are not run. The process does not reach any test if the preparation of the suite fails.
func ReadReport(report []byte, tests []Test) ([]Result, error) {
	var parsed junitReport
	if err := xml.Unmarshal(report, &parsed); err != nil {
		return nil, fmt.Errorf("reading the JUnit report: %w", err)
	}
	byName := map[string]junitCase{}
	reason := "the process ended before the test"
	for _, c := range parsed.Cases {
		if name, isTest := strings.CutPrefix(c.Name, specPrefix); isTest {
			byName[normalize(name)] = c
		} else if c.Failure != nil || c.Error != nil {
			reason = c.Name + ": " + c.text()
		}
	}
	results := make([]Result, 0, len(tests))
	for _, t := range tests {
		c, found := byName[t.Name]
		if !found {
			results = append(results, Result{Name: t.Name, State: NotRun, Message: "the report does not contain the test"})
			continue
		}
		results = append(results, c.result(t.Name, reason))
	}
	return results, nil
}

// interrupted are the states of tests that did not end by themselves.
var interrupted = []string{"interrupted", "aborted", "pending", ""}

func (c junitCase) result(name, reason string) Result {
	r := Result{Name: name, Message: c.text()}
	if seconds, err := strconv.ParseFloat(c.Time, 64); err == nil {
		r.Duration = time.Duration(seconds * float64(time.Second))
	}
	why, skippedItself := strings.CutPrefix(r.Message, skipPrefix)
	switch {
	case c.Status == "passed":
		r.State, r.Message = Passed, ""
	case c.Status == "skipped" && skippedItself:
		r.State, r.Message = Skipped, why
	case c.Status == "skipped":
		r.State, r.Message = NotRun, reason
	case slices.Contains(interrupted, c.Status):
		r.State = NotRun
		if r.Message == "" {
			r.Message = reason
		}
	default: // failed, panicked, timedout
		r.State = Failed
	}
	return r
}
