// Package docs tests that the documentation matches the repository.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promiseHeader begins every table of "Promise by promise".
const promiseHeader = "| promise | verdict | test |"

var (
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*…?`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	// verdictWord begins a verdict.
	verdictWord = regexp.MustCompile(`^(same|better|not)\b`)
	// aboutHealth matches tests of pure functions that determine health.
	aboutHealth = regexp.MustCompile(`pkg/(health|live)|TestConditionsOfHealth|TestRelevantChangeOfHealth`)
)

// TestNamedTestsExist checks that every test that these pages name exists. A name that ends in … is a prefix.
func TestNamedTestsExist(t *testing.T) {
	existing := testsBelow(t, "..")
	for _, page := range []string{"compatibility.md", "guarantees.md", "security.md", "shoot.md"} {
		for _, name := range testName.FindAllString(pages(t)[page], -1) {
			if !exists(name, existing) {
				t.Errorf("%s names the test %s, which does not exist", page, name)
			}
		}
	}
}

// TestGuaranteesNameTests checks that each row of "Promise by promise" in security.md and of "Guarantees" in
// guarantees.md names a test.
func TestGuaranteesNameTests(t *testing.T) {
	for page, title := range map[string]string{"security.md": "Promise by promise", "guarantees.md": "Guarantees"} {
		_, section, _ := strings.Cut(pages(t)[page], "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		rows := 0
		for line := range strings.SplitSeq(section, "\n") {
			if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, "| test |") {
				continue
			}
			rows++
			if cells := strings.Split(strings.Trim(line, "|"), "|"); len(cells) != 2 || !testName.MatchString(cells[1]) {
				t.Errorf("%s: a guarantee without a test: %s", page, line)
			}
		}
		if rows < 20 {
			t.Errorf("%s: found only %d guarantees", page, rows)
		}
	}
}

// TestPromisesAreTestedOnARealAPIServer checks the rows of "Promise by promise": each must have a verdict and a
// test on a real API server. Pure functions of pkg/health and of the packages that provide its input may be tested
// there instead.
func TestPromisesAreTestedOnARealAPIServer(t *testing.T) {
	_, section, _ := strings.Cut(pages(t)["compatibility.md"], "\n## Promise by promise\n")
	section, _, _ = strings.Cut(section, "\n## ")
	onAPIServer, ofHealth := testsBelow(t, "../test"), testsBelow(t, "../pkg")
	rows := 0
	for line := range strings.SplitSeq(section, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || line == promiseHeader {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			t.Errorf("a row with %d cells: %s", len(cells), line)
			continue
		}
		verdict := strings.TrimSpace(cells[1])
		if !verdictWord.MatchString(verdict) {
			t.Errorf("the verdict is neither same, better nor not: %s", line)
		}
		tested := slices.ContainsFunc(testName.FindAllString(cells[2], -1), func(name string) bool {
			return exists(name, onAPIServer) || aboutHealth.MatchString(cells[2]) && exists(name, ofHealth)
		})
		if !tested {
			t.Errorf("no test on a real API server: %s", line)
		}
	}
	if rows < 100 {
		t.Errorf("found only %d promises", rows)
	}
}

// testsBelow returns the names of all tests below a directory, one in each line.
func testsBelow(t *testing.T, directory string) string {
	t.Helper()
	names := "\n"
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllSubmatch(content, -1) {
			names += string(match[1]) + "\n"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// exists reports whether a name is among the lines. A name that ends in … is a prefix.
func exists(name, lines string) bool {
	prefix, isPrefix := strings.CutSuffix(name, "…")
	if !isPrefix {
		prefix += "\n"
	}
	return strings.Contains(lines, "\n"+prefix)
}

// pages returns the content of all pages by their path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil || len(paths) < 5 {
		t.Fatalf("found the pages %v: %v", paths, err)
	}
	content := map[string]string{}
	for _, path := range append(paths, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../examples/webshop/README.md") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content[path] = string(data)
	}
	return content
}
