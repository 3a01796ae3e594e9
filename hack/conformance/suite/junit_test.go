package suite

import (
	"strings"
	"testing"
	"time"
)

// TestReadReport checks the state of each kind of test in a report as e2e.test writes it.
func TestReadReport(t *testing.T) {
	const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="9" disabled="1" errors="1" failures="2" time="77.5">
  <testsuite name="Kubernetes e2e suite" package="/work">
    <properties><property name="SuiteSucceeded" value="false"></property></properties>
    <testcase name="[SynchronizedBeforeSuite]" classname="Kubernetes e2e suite" status="passed" time="2.5"></testcase>
    <testcase name="[It] [sig-a] passes [Conformance]" classname="Kubernetes e2e suite" status="passed" time="12.25"></testcase>
    <testcase name="[It] [sig-a] fails &lt;b&gt; [Conformance]" classname="Kubernetes e2e suite" status="failed" time="3">
      <failure type="failed">[FAILED] expected 1 pod&#xA;at pods.go:10</failure><system-err>log</system-err></testcase>
    <testcase name="[It] [sig-a] panics" classname="Kubernetes e2e suite" status="panicked" time="0"><error message="nil pointer" type="panicked"></error></testcase>
    <testcase name="[It] [sig-a] is too slow" classname="Kubernetes e2e suite" status="timedout" time="9"><failure message="timed out" type="timedout"></failure></testcase>
    <testcase name="[It] [sig-a] needs two nodes" classname="Kubernetes e2e suite" status="skipped" time="0.1"><skipped message="skipped - Requires at least 2 nodes (not 1)"></skipped></testcase>
    <testcase name="[It] [sig-a] is not reached" classname="Kubernetes e2e suite" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
    <testcase name="[It] [sig-a] is interrupted" classname="Kubernetes e2e suite" status="interrupted" time="1"><error message="Interrupted by User" type="interrupted"></error></testcase>
  </testsuite>
</testsuites>`
	want := []Result{
		{Name: "[sig-a] passes [Conformance]", State: Passed, Duration: 12250 * time.Millisecond},
		{Name: "[sig-a] fails <b> [Conformance]", State: Failed, Duration: 3 * time.Second, Message: "[FAILED] expected 1 pod\nat pods.go:10"},
		{Name: "[sig-a] panics", State: Failed, Message: "nil pointer"},
		{Name: "[sig-a] is too slow", State: Failed, Duration: 9 * time.Second, Message: "timed out"},
		{Name: "[sig-a] needs two nodes", State: Skipped, Duration: 100 * time.Millisecond, Message: "Requires at least 2 nodes (not 1)"},
		{Name: "[sig-a] is not reached", State: NotRun, Message: "the process ended before the test"},
		{Name: "[sig-a] is interrupted", State: NotRun, Duration: time.Second, Message: "Interrupted by User"},
		{Name: "[sig-a] is absent", State: NotRun, Message: "the report does not contain the test"},
	}
	var tests []Test
	for _, w := range want {
		tests = append(tests, Test{Name: w.Name})
	}
	got, err := ReadReport([]byte(report), tests)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the result is %+v, want %+v", got[i], want[i])
		}
	}
}

// TestReportOfFailedPreparation checks that no test counts as skipped when the preparation of the suite fails.
func TestReportOfFailedPreparation(t *testing.T) {
	const report = `<testsuites><testsuite>
    <testcase name="[SynchronizedBeforeSuite]" status="failed"><failure type="failed">nodes are not ready</failure></testcase>
    <testcase name="[It] [sig-a] test" status="skipped"><skipped message="skipped"></skipped></testcase>
  </testsuite></testsuites>`
	results, err := ReadReport([]byte(report), []Test{{Name: "[sig-a] test"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; r.State != NotRun || r.Message != "[SynchronizedBeforeSuite]: nodes are not ready" {
		t.Errorf("the result is %+v", r)
	}
	for _, bad := range []string{"", "<testsuites>", "{}"} {
		if _, err := ReadReport([]byte(bad), nil); err == nil || !strings.Contains(err.Error(), "JUnit") {
			t.Errorf("the report %q: error %v", bad, err)
		}
	}
}
