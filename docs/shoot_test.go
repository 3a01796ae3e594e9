package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// subtest is the name of a test with one of its cases.
var subtest = regexp.MustCompile("`(Test[A-Z]\\w*)/([\\w-]+)`")

// TestFieldsOfShootsHaveTests: each row of "What a Shoot can declare" in shoot.md names a test that exists, and cases of tests that exist.
func TestFieldsOfShootsHaveTests(t *testing.T) {
	_, section, _ := strings.Cut(pages(t)["shoot.md"], "\n## What a Shoot can declare\n")
	section, _, _ = strings.Cut(section, "\n## ")
	existing, rows := testsBelow(t, ".."), 0
	for line := range strings.SplitSeq(section, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, "| test |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		names := testName.FindAllString(cells[len(cells)-1], -1)
		if len(cells) != 3 || len(names) == 0 {
			t.Errorf("a row without a test: %s", line)
		}
		for _, name := range names {
			if !exists(name, existing) {
				t.Errorf("the test %s does not exist: %s", name, line)
			}
		}
		for _, named := range subtest.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			if !hasCase(t, named[1], named[2]) {
				t.Errorf("the test %s has no case %s: %s", named[1], named[2], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("found only %d rows", rows)
	}
}

// hasCase reports whether a file with a test of that name has the name of a case, in quotes.
func hasCase(t *testing.T, test, name string) bool {
	t.Helper()
	files, err := filepath.Glob("../pkg/shoot/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	components, err := filepath.Glob("../pkg/component/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, components...) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(content); strings.Contains(text, "\nfunc "+test+"(") && strings.Contains(text, `"`+name+`"`) {
			return true
		}
	}
	return false
}
