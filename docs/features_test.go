package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	featureRow  = regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+) \| (.+?) \| (.+) \|$`)
	featureTest = regexp.MustCompile("`([\\w./-]+) ((?:Test|Fuzz)\\w+)`")
	featurePage = regexp.MustCompile(`(?m)^\| (?:\[.+\]\((features/.+\.md)\)|all) \| (\d+) \| (\d+) \|$`)
)

// TestFeatures checks the rows of the pages about features: ids are unique, and each row names a test that exists in the
// directory given.
func TestFeatures(t *testing.T) {
	paths, err := filepath.Glob("features/*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("found the pages %v: %v", paths, err)
	}
	index := featureCounts(t)
	seen, total := map[string]bool{}, 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rows := featureRow.FindAllStringSubmatch(string(data), -1)
		if lines := strings.Count(string(data), "\n| "); lines != len(rows)+1 { // and the header
			t.Errorf("%s: %d of %d rows are not of the form | id | meaning | tests |", path, lines-1-len(rows), lines-1)
		}
		if index[path] != len(rows) {
			t.Errorf("features.md counts %d rows in %s, which has %d", index[path], path, len(rows))
		}
		total += len(rows)
		for _, row := range rows {
			if seen[row[1]] {
				t.Errorf("%s: %s occurs twice", path, row[1])
			}
			seen[row[1]] = true
			for _, missing := range missingTests(t, row[3]) {
				t.Errorf("%s: %s: %s", path, row[1], missing)
			}
		}
	}
	if index[""] != total {
		t.Errorf("features.md counts %d rows, the pages have %d", index[""], total)
	}
}

// missingTests returns what is wrong with a cell that lists tests as `directory TestName`, separated by commas.
func missingTests(t *testing.T, cell string) []string {
	t.Helper()
	var missing []string
	for entry := range strings.SplitSeq(cell, ", ") {
		match := featureTest.FindStringSubmatch(entry)
		if len(match) != 3 || match[0] != entry {
			missing = append(missing, entry+" is not of the form `directory TestName`")
			continue
		}
		if !definesTest(t, filepath.Join("..", match[1]), match[2]) {
			missing = append(missing, match[1]+" has no test "+match[2])
		}
	}
	return missing
}

// definesTest reports whether a test file of the directory defines the test.
func definesTest(t *testing.T, directory, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// featureCounts returns the number of rows that features.md states for each page, and for all pages under the empty path.
func featureCounts(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, match := range featurePage.FindAllStringSubmatch(pages(t)["features.md"], -1) {
		count, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		if stated, err := strconv.Atoi(match[3]); err != nil || count > stated {
			t.Errorf("features.md: %s: more works than is stated", match[0])
		}
		counts[match[1]] = count
	}
	return counts
}
