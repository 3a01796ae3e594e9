package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const list = `
- testname: Second
  codename: '[sig-node] Pods should
    run [NodeConformance] [Conformance]'
  file: test/e2e/common/node/pods.go
- testname: First
  codename: '[sig-apps] Daemon set should run (a.b) [Conformance] [Serial]'
- testname: Third
  codename: '[sig-network] DNS should resolve [Conformance]'
- testname: Fourth
  codename: '[sig-scheduling] Taints should evict [Conformance] [Disruptive]'
`

func parsed(t *testing.T) []Test {
	t.Helper()
	tests, err := Parse([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func names(tests []Test) []string {
	var names []string
	for _, t := range tests {
		names = append(names, strings.Fields(t.Name)[1])
	}
	return names
}

func TestParse(t *testing.T) {
	tests := parsed(t)
	if got, want := names(tests), []string{"Daemon", "DNS", "Pods", "Taints"}; !slices.Equal(got, want) {
		t.Errorf("the tests are %v, want %v", got, want)
	}
	if got, want := tests[2].Name, "[sig-node] Pods should run [NodeConformance] [Conformance]"; got != want {
		t.Errorf("the wrapped name is %q, want %q", got, want)
	}
	if got := tests[2].Area() + areaOf("Pods") + areaOf("[sig-node"); got != "node"+"other"+"other" {
		t.Errorf("the areas are %s", got)
	}
	for _, bad := range []string{"", "[]", "{", "name: test"} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("the list %q is accepted, want an error", bad)
		}
	}
}

func TestSelect(t *testing.T) {
	for expression, want := range map[string][]string{
		"":                          {"Daemon", "DNS", "Pods", "Taints"},
		`\[sig-(node|network)\]`:    {"DNS", "Pods"},
		`\[Serial\]|\[Disruptive\]`: {"Daemon", "Taints"},
	} {
		selected, err := Select(parsed(t), expression)
		if err != nil || !slices.Equal(names(selected), want) {
			t.Errorf("%q selects %v, error %v, want %v", expression, names(selected), err, want)
		}
	}
	for expression, want := range map[string]string{"[": "not a regular expression", "no such test": "none of the 4 conformance tests"} {
		if _, err := Select(parsed(t), expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", expression, err, want)
		}
	}
}

func TestDivide(t *testing.T) {
	var tests []Test
	for _, name := range []string{"a", "b", "c", "d [Serial]", "e", "f [Disruptive]", "g"} {
		tests = append(tests, Test{Name: "[sig-x] " + name})
	}
	parallel, serial := Divide(tests, 2)
	text := func(shards []Shard) string {
		var parts []string
		for _, s := range shards {
			parts = append(parts, strings.Join(names(s), ""))
		}
		return strings.Join(parts, " ")
	}
	if got := text(parallel) + " | " + text(serial); got != "ae bg c | df" {
		t.Errorf("the shards are %q", got)
	}
	if parallel, serial := Divide(nil, 2); len(parallel)+len(serial) != 0 {
		t.Errorf("no tests make %d and %d shards", len(parallel), len(serial))
	}
}

// TestFocus checks that the expression of a shard matches its tests in the text that ginkgo matches, which begins with the name of the
// suite, and no others.
func TestFocus(t *testing.T) {
	tests := parsed(t)
	focus := regexp.MustCompile(Shard(tests[:2]).Focus())
	for i, test := range tests {
		if got, want := focus.MatchString("Kubernetes e2e suite "+test.Name), i < 2; got != want {
			t.Errorf("%s: matched %t, want %t", test.Name, got, want)
		}
	}
	for _, other := range []string{tests[0].Name + " [Slow]", strings.ReplaceAll(tests[0].Name, "a.b", "a-b")} {
		if focus.MatchString("Kubernetes e2e suite " + other) {
			t.Errorf("the focus matches %s", other)
		}
	}
}

func TestKnownFailures(t *testing.T) {
	if _, err := KnownFailures(); err != nil {
		t.Errorf("the list in the repository: %v", err)
	}
	known, err := ParseKnown([]byte("- {test: a, clusters: [shoot], reason: one}\n- {test: b, reason: two}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := Explain(known, "shoot", "a") + Explain(known, "base", "a") + Explain(known, "base", "b") + Explain(known, "base", "c"); got != "onetwo" {
		t.Errorf("the explanations are %q", got)
	}
	if got := Unknown(known, []Test{{Name: "a"}}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("without tests are %v", got)
	}
	for _, bad := range []string{"- {test: a}", "- {reason: a}", "- {test: a, reason: b, cluster: c}", "- {test: 'a  b', reason: c}", "{"} {
		if _, err := ParseKnown([]byte(bad)); err == nil {
			t.Errorf("the list %q is accepted, want an error", bad)
		}
	}
}

// TestResults checks that results survive a restart, also that of a process that was killed while it wrote, and which tests remain.
func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "results.jsonl")
	results := opened(t, path)
	add(t, results, Result{Name: "a", State: Passed}, Result{Name: "b", State: Failed, Message: "first"}, Result{Name: "c", State: NotRun})
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"name":"a","state":"fai`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	results = opened(t, path)
	add(t, results, Result{Name: "b", State: Failed, Message: "second"}, Result{Name: "d", State: Skipped})
	results = opened(t, path)
	if b := results.Result("b"); b.Attempts != 2 || b.Message != "second" {
		t.Errorf("the repeated test has the result %+v", b)
	}
	if a, c := results.Result("a"), results.Result("c"); a.State != Passed || a.Attempts != 1 || c.State != NotRun || c.Attempts != 0 {
		t.Errorf("the results are %+v and %+v", a, c)
	}
	var tests []Test
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		tests = append(tests, Test{Name: name})
	}
	text := func(tests []Test) string {
		var text string
		for _, t := range tests {
			text += t.Name
		}
		return text
	}
	if got := text(results.Remaining(tests, false)) + " " + text(results.Remaining(tests, true)); got != "ce bce" {
		t.Errorf("the remaining tests are %q", got)
	}
}

func opened(t *testing.T, path string) *Results {
	t.Helper()
	results, err := OpenResults(path)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func add(t *testing.T, results *Results, added ...Result) {
	t.Helper()
	if err := results.Add(added...); err != nil {
		t.Fatal(err)
	}
}
