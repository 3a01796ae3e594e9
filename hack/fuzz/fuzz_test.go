package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	root := t.TempDir()
	const fuzzTest = "package a\n\nfunc FuzzA(f *testing.F) {}\n\nfunc helper(f *testing.F) {}\n\nfunc FuzzB(tb *testing.F) {}\n"
	for path, content := range map[string]string{
		"a/a_test.go": fuzzTest, "a/a.go": fuzzTest, "a/testdata/x_test.go": fuzzTest, "b/go.mod": "", "b/c/b_test.go": fuzzTest,
		".hidden/a_test.go": fuzzTest, "bin/a_test.go": fuzzTest, "d/e/e_test.go": strings.ReplaceAll(fuzzTest, "Fuzz", "FuzzOf"),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for selection, want := range map[string][]target{
		"":              {{"a", "FuzzA"}, {"a", "FuzzB"}, {"d/e", "FuzzOfA"}, {"d/e", "FuzzOfB"}},
		"^d/e.FuzzOfB$": {{"d/e", "FuzzOfB"}},
		"FuzzB":         {{"a", "FuzzB"}},
		"nothing":       nil,
	} {
		got, err := find(root, regexp.MustCompile(selection))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", selection, got, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	const clean = `fuzz: elapsed: 0s, gathering baseline coverage: 0/22 completed
fuzz: elapsed: 0s, gathering baseline coverage: 22/22 completed, now fuzzing with 2 workers
fuzz: elapsed: 3s, execs: 102 (34/sec), new interesting: 1 (total: 23)
fuzz: elapsed: 4s, execs: 200 (98/sec), new interesting: 5 (total: 27)
PASS
`
	const failed = `fuzz: elapsed: 2s, execs: 10 (5/sec), new interesting: 0 (total: 3)
--- FAIL: FuzzA (2.01s)
    --- FAIL: FuzzA (0.00s)
        a_test.go:12: it is | wrong

    Failing input written to testdata/fuzz/FuzzA/582528ddfad69eb5
`
	ended := errors.New("exit status 1")
	for name, test := range map[string]struct {
		output string
		ended  error
		want   result
	}{
		"clean":     {clean, nil, result{Seconds: 4, Executions: 200, PerSecond: 50, Interesting: 5, Corpus: 27}},
		"failed":    {failed, ended, result{Seconds: 2, Executions: 10, PerSecond: 5, Corpus: 3, Failure: "a_test.go:12: it is | wrong", Input: "testdata/fuzz/FuzzA/582528ddfad69eb5"}},
		"not built": {"# a\n./a.go:1: syntax error\n", ended, result{Failure: "exit status 1"}},
	} {
		if got := read(target{}, test.output, test.ended); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	if got := table([]result{{}}); !strings.Contains(got, "nothing new was tried") {
		t.Errorf("a target without executions is reported as\n%s", got)
	}
	got := table([]result{read(target{"a", "FuzzA"}, clean, nil), read(target{"b", "FuzzB"}, failed, ended)})
	for _, line := range []string{
		"| a.FuzzA | 4s | 200 | 50 | 5 | 27 | clean |\n",
		"| b.FuzzB | 2s | 10 | 5 | 0 | 3 | a_test.go:12: it is \\| wrong (testdata/fuzz/FuzzA/582528ddfad69eb5) |\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("the table lacks %q:\n%s", line, got)
		}
	}
}
