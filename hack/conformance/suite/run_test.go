package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program writes a shell script in place of e2e.test. It gets the directory of the report in $dir.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "e2e.test")
	content := "#!/bin/sh\nfor a in \"$@\"; do case $a in --report-dir=*) dir=${a#*=};; --ginkgo.focus=*) focus=$a;; esac; done\n" + script
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func runner(t *testing.T, script string) (*Runner, *bytes.Buffer) {
	t.Helper()
	directory, out := t.TempDir(), &bytes.Buffer{}
	return &Runner{
		Program: program(t, script), Directory: directory, Results: opened(t, filepath.Join(directory, "results.jsonl")), Out: out, Now: time.Now,
	}, out
}

const passAndFail = `cat >"$dir/junit_01.xml" <<EOF
<testsuites><testsuite>
<testcase name="[It] [sig-a] good" status="passed" time="1"></testcase>
<testcase name="[It] [sig-a] bad" status="failed" time="2"><failure>no answer
of the server</failure></testcase>
</testsuite></testsuites>
EOF
exit 1
`

// TestRun checks that results are recorded, that what belongs to passed tests is removed, and what the report says.
func TestRun(t *testing.T) {
	r, out := runner(t, passAndFail)
	tests := []Test{{Name: "[sig-a] bad"}, {Name: "[sig-a] good"}}
	if err := r.Run(t.Context(), []Shard{{tests[0]}, {tests[1]}}, 2); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2/2  passed 1, failed 1, skipped 0, not run 0") || !strings.Contains(out.String(), "failed: [sig-a] bad\n      no answer\n") {
		t.Errorf("the progress is\n%s", out)
	}
	left, err := filepath.Glob(filepath.Join(r.Directory, "shard-*"))
	if err != nil || len(left) != 1 || !strings.HasPrefix(r.Results.Result(tests[0].Name).Log, left[0]) {
		t.Errorf("these directories are left: %v, error %v", left, err)
	}
	for _, test := range []struct {
		known []Known
		want  Counts
		err   string
		text  string
	}{
		{nil, Counts{Tests: 2, Passed: 1, Unexplained: 1}, "1 tests failed without an explanation", "Failed without an explanation\n  [sig-a] bad\n      no answer\n"},
		{[]Known{{Test: "[sig-a] bad", Reason: "by design"}}, Counts{Tests: 2, Passed: 1, Explained: 1}, "", "Failed, explained\n  [sig-a] bad\n      by design\n"},
		{[]Known{{Test: "[sig-a] good", Reason: "by design"}}, Counts{Tests: 2, Passed: 1, Unexplained: 1}, "1 tests failed", "but passed: [sig-a] good\n"},
	} {
		report := NewReport("base", "v1.37.1", "", tests, r.Results, test.known)
		if report.Total != test.want || len(report.Areas) != 1 || report.Areas[0] != (Area{"a", test.want}) {
			t.Errorf("the counts are %+v, want %+v", report, test.want)
		}
		if err := report.Err(); (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("the error is %v, want %q", err, test.err)
		}
		var text bytes.Buffer
		if err := report.WriteTable(&text); err != nil || !strings.Contains(text.String(), test.text) {
			t.Errorf("error %v, the table is\n%s\nwant\n%s", err, &text, test.text)
		}
		var encoded bytes.Buffer
		if err := report.WriteJSON(&encoded); err != nil {
			t.Fatal(err)
		}
		var decoded Report
		if err := json.Unmarshal(encoded.Bytes(), &decoded); err != nil || decoded.Total != report.Total || len(decoded.Tests) != 2 {
			t.Errorf("the JSON is %s, error %v", &encoded, err)
		}
	}
}

// TestUnusableCluster checks that the run ends early if processes do not reach their tests.
func TestUnusableCluster(t *testing.T) {
	r, out := runner(t, "echo connection refused; exit 1\n")
	shards := make([]Shard, 10)
	for i := range shards {
		shards[i] = Shard{{Name: "[sig-a] test"}}
	}
	err := r.Run(t.Context(), shards, 1)
	if err == nil || !strings.Contains(err.Error(), "3 processes in a row ran none") {
		t.Errorf("the error is %v", err)
	}
	if strings.Contains(out.String(), "4/10") {
		t.Errorf("the progress is\n%s", out)
	}
	if result := r.Results.Result("[sig-a] test"); result.State != NotRun || !strings.Contains(result.Message, "connection refused") {
		t.Errorf("the result is %+v", result)
	}
}

// TestInterrupted checks that tests are not run if the time is over, and that the report says how to continue.
func TestInterrupted(t *testing.T) {
	r, _ := runner(t, "exit 1\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []Test{{Name: "[sig-a] test"}}
	if err := r.Run(ctx, []Shard{tests}, 1); err != nil {
		t.Fatal(err)
	}
	if err := NewReport("base", "v1.37.1", "", tests, r.Results, nil).Err(); err == nil || !strings.Contains(err.Error(), "repeat the command to continue") {
		t.Errorf("the error is %v", err)
	}
}
