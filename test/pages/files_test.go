package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longestWalk is the maximum number of files that the reconciliation of a changed Secret may visit.
const longestWalk = 15

// TestFilesOfBehaviours checks the table in CONTRIBUTING.md of where to find a behaviour: each file must have a
// declaration of that name.
func TestFilesOfBehaviours(t *testing.T) {
	rows := rowsOf(t, "\n## Where to find it\n", "\n### ", 3)
	if len(rows) < 20 {
		t.Fatalf("the table has %d files, want at least 20", len(rows))
	}
	for _, row := range rows {
		file, names := quoted(row[1])[0], quoted(row[2])
		declared := declarationsOf(t, filepath.Join(root(t), file))
		for _, name := range names {
			if declared[name] == nil {
				t.Errorf("CONTRIBUTING.md: %s: %s does not declare %s", row[0], file, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("CONTRIBUTING.md: %s: name a declaration", row[0])
		}
	}
}

// TestWalkOfSecret checks the walk in CONTRIBUTING.md. It lists the files that the reconciliation of a changed
// Secret visits, each once. Each named function must be declared in its file and called by another named function.
// These may call functions of other files only conditionally.
func TestWalkOfSecret(t *testing.T) {
	dir := filepath.Join(root(t), "pkg", "managedresource")
	walk := rowsOf(t, "\n### The walk of one changed Secret\n", "\nThe other files", 2)
	if len(walk) > longestWalk {
		t.Errorf("the walk visits %d files, want at most %d", len(walk), longestWalk)
	}
	files, functions := []string{}, map[string]ast.Node{}
	for _, row := range walk {
		file := quoted(row[0])[0]
		files = append(files, file)
		declared := declarationsOf(t, filepath.Join(dir, file))
		for _, name := range quoted(row[1]) {
			if declared[name] == nil {
				t.Errorf("%s does not declare %s", file, name)
			}
			functions[name] = declared[name]
		}
	}
	var others []string
	for _, row := range rowsOf(t, "\nThe other files", "\n### ", 2) {
		others = append(others, quoted(row[0])[0])
	}
	both := slices.Sorted(slices.Values(slices.Concat(files, others)))
	if listed := productionFiles(t, dir); !slices.Equal(both, listed) {
		t.Errorf("the walk and the other files are\n%v, want each file once:\n%v", both, listed)
	}
	called := map[string]bool{"referringToSecret": true, "Reconcile": true} // by controller-runtime
	elsewhere := namesDeclaredOnlyIn(t, dir, others, files)
	for name, function := range functions {
		always := map[string]bool{}
		if function, is := function.(*ast.FuncDecl); is {
			mentions(function.Body, called)
			alwaysCalls(function.Body, always)
		}
		for callee := range always {
			if elsewhere[callee] {
				t.Errorf("%s always calls %s, whose file is not on the walk", name, callee)
			}
		}
	}
	for name := range functions {
		if !called[baseName(name)] {
			t.Errorf("no function on the walk calls %s", name)
		}
	}
}

// rowsOf returns the rows of the table between two texts in CONTRIBUTING.md.
func rowsOf(t *testing.T, from, to string, columns int) [][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root(t), "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), from)
	section, _, _ = strings.Cut(section, to)
	var rows [][]string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == columns && strings.Contains(line, "`") {
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("CONTRIBUTING.md has no table after %q", from)
	}
	return rows
}

// quoted returns the texts in backquotes in a cell.
func quoted(cell string) []string {
	var texts []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		texts = append(texts, match[1])
	}
	return texts
}

// declarationsOf returns the top-level declarations of a Go file. The names of methods have their type as a
// prefix.
func declarationsOf(t *testing.T, path string) map[string]ast.Node {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]ast.Node{}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			declared[receiverOf(declaration)+declaration.Name.Name] = declaration
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					declared[spec.Name.Name] = spec
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						declared[name.Name] = spec
					}
				}
			}
		}
	}
	return declared
}

// receiverOf returns the type name of a method followed by a dot, or an empty string for a function.
func receiverOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	of := function.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	if index, is := of.(*ast.IndexExpr); is {
		of = index.X
	}
	if name, is := of.(*ast.Ident); is {
		return name.Name + "."
	}
	return ""
}

func baseName(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// productionFiles returns the names of the Go files of a directory except tests, sorted.
func productionFiles(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// namesDeclaredOnlyIn returns the names of functions that the given files of a directory declare, and other files
// do not.
func namesDeclaredOnlyIn(t *testing.T, dir string, files, not []string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	each := func(files []string, found func(name string)) {
		for _, file := range files {
			for name, node := range declarationsOf(t, filepath.Join(dir, file)) {
				if _, is := node.(*ast.FuncDecl); is {
					found(baseName(name))
				}
			}
		}
	}
	each(files, func(name string) { names[name] = true })
	each(not, func(name string) { delete(names, name) })
	return names
}

// mentions adds the names that a function uses to a set.
func mentions(function ast.Node, names map[string]bool) {
	ast.Inspect(function, func(node ast.Node) bool {
		if name, is := node.(*ast.Ident); is {
			names[name.Name] = true
		}
		return true
	})
}

// alwaysCalls adds the names of the functions that a function calls unconditionally to a set.
func alwaysCalls(function ast.Node, names map[string]bool) {
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt: // its condition is always evaluated
			if node.Init != nil {
				alwaysCalls(node.Init, names)
			}
			alwaysCalls(node.Cond, names)
			return false
		case *ast.CaseClause:
			return false
		case *ast.CallExpr:
			switch called := node.Fun.(type) {
			case *ast.Ident:
				names[called.Name] = true
			case *ast.SelectorExpr:
				names[called.Sel.Name] = true
			}
		}
		return true
	})
}
