package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	requirement  = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`) // without "// indirect"
	codeInCell   = regexp.MustCompile("`([^`]+)`")
	pathInModule = "github.com/trellis-k8s/trellis/"
)

// TestDirectDependencies checks that decisions.md lists exactly the direct dependencies of go.mod, and that each directory in the table
// contains a package that imports the module.
func TestDirectDependencies(t *testing.T) {
	content, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var required, listed []string
	for _, match := range requirement.FindAllStringSubmatch(string(content), -1) {
		required = append(required, match[1])
	}
	imports := importsByDirectory(t)
	_, section, _ := strings.Cut(pages(t)["decisions.md"], "\n## Direct dependencies\n")
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		module := strings.Trim(cells[0], " `")
		listed = append(listed, module)
		for _, match := range codeInCell.FindAllStringSubmatch(cells[2], -1) {
			if !imported(imports, match[1], module) {
				t.Errorf("decisions.md: %s is not imported below %s", module, match[1])
			}
		}
	}
	slices.Sort(required)
	if !slices.IsSorted(listed) || !slices.Equal(listed, required) {
		t.Errorf("decisions.md lists\n%s\nand go.mod requires\n%s", strings.Join(listed, "\n"), strings.Join(required, "\n"))
	}
}

func imported(imports map[string][]string, below, module string) bool {
	for directory, paths := range imports {
		if directory != below && !strings.HasPrefix(directory, below+"/") {
			continue
		}
		if slices.ContainsFunc(paths, func(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }) {
			return true
		}
	}
	return false
}

// importsByDirectory returns the packages of other modules that the Go files of each directory import.
func importsByDirectory(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, root := range []string{"cmd", "docs", "hack", "pkg", "test"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			directory := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../")))
			for _, spec := range file.Imports {
				if name := strings.Trim(spec.Path.Value, `"`); !strings.HasPrefix(name, pathInModule) {
					imports[directory] = append(imports[directory], name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return imports
}
