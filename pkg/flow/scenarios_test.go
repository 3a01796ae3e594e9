package flow

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// page is the document that lists the scenarios.
const page = "../../docs/flows.md"

var (
	scenarioRow = regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \| (.+) \|$`)
	testName    = regexp.MustCompile("`(Test\\w+)`")
)

// TestScenariosOfThePage checks that the page has all 26 scenarios, each with existing tests or with the flow that it belongs
// to.
func TestScenariosOfThePage(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	exist := testsIn(t, "../../pkg", "../../test")
	seen := 0
	for _, row := range scenarioRow.FindAllStringSubmatch(string(content), -1) {
		seen++
		if row[1] != strconv.Itoa(seen) {
			t.Errorf("row %d has the number %s", seen, row[1])
		}
		names := testName.FindAllStringSubmatch(row[3], -1)
		if len(names) == 0 && !strings.Contains(row[3], "not yet") {
			t.Errorf("scenario %s names neither a test nor the flow that it belongs to: %s", row[1], row[3])
		}
		for _, name := range names {
			if !exist[name[1]] {
				t.Errorf("scenario %s: test %s does not exist", row[1], name[1])
			}
		}
	}
	if seen != 26 {
		t.Errorf("the page has %d scenarios of 26", seen)
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func testsIn(t *testing.T, roots ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(content, []byte("func Test")) {
				return err
			}
			for _, match := range testFunction.FindAllSubmatch(content, -1) {
				found[string(match[1])] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
