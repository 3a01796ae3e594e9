package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFilesOfBehaviours: each file in the table of CONTRIBUTING.md that says where a behaviour is found exists.
func TestFilesOfBehaviours(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Where to find it\n")
	section, _, _ = strings.Cut(section, "\n## ")
	files := regexp.MustCompile("(?m)`([^`]+)` \\|$").FindAllStringSubmatch(section, -1)
	if len(files) < 20 {
		t.Fatalf("the table names %d files, want at least 20", len(files))
	}
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(root, file[1])); err != nil {
			t.Errorf("CONTRIBUTING.md names a file that does not exist: %v", err)
		}
	}
}
