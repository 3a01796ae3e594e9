// Package docs tests that the documentation speaks of what is there.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile(`Test[A-Z]\w*…?`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	pageLink = regexp.MustCompile(`\]\(([\w./-]+\.md)(#[\w-]+)?\)`)
)

// TestNamedTestsExist checks that every test that compatibility.md names exists. A name that ends in … is a prefix.
func TestNamedTestsExist(t *testing.T) {
	var existing []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllSubmatch(content, -1) {
			existing = append(existing, string(match[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := "\n" + strings.Join(existing, "\n") + "\n"
	for _, name := range testName.FindAllString(pages(t)["compatibility.md"], -1) {
		prefix, isPrefix := strings.CutSuffix(name, "…")
		if !isPrefix {
			prefix += "\n"
		}
		if !strings.Contains(all, "\n"+prefix) {
			t.Errorf("compatibility.md names the test %s, which does not exist", name)
		}
	}
}

func TestLinkedPagesExist(t *testing.T) {
	for page, content := range pages(t) {
		for _, match := range pageLink.FindAllStringSubmatch(content, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			}
		}
	}
}

// pages returns the content of all pages by their path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil || len(paths) < 5 {
		t.Fatalf("found the pages %v: %v", paths, err)
	}
	content := map[string]string{}
	for _, path := range append(paths, "../README.md", "../CONTRIBUTING.md") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content[path] = string(data)
	}
	return content
}
