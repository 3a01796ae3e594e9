// Package callers checks that exported code has a caller. Unexported code is checked by the linter unused.
package callers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/trellis-k8s/trellis/"

// libraries are directories with code for other projects: types of APIs, and what extensions and flows are written with.
var libraries = []string{"pkg/apis/", "pkg/extension/", "pkg/openapi/"}

// exceptions are names without a caller, with the reason.
var exceptions = map[string]string{
	"pkg/flow.Canonical":  "for authors of flows: docs/flows.md",
	"pkg/flow.FleetOf":    "tests of several packages count what rolls out",
	"pkg/flow.Render":     "tests of several packages compare what is emitted",
	"pkg/flow/table.Seed": "the zero value",
	"pkg/controllermanager/controller/managedseedset.Unknown": "the zero value",
}

// TestExportedCodeHasACaller checks that every exported function, variable, constant and type is used by a program, and not only by tests.
func TestExportedCodeHasACaller(t *testing.T) {
	t.Parallel()
	declared, uses := read(t)
	for name, times := range declared {
		_, excepted := exceptions[name]
		if called := uses[name] > times; called && excepted {
			t.Errorf("%s has a caller: remove it from the exceptions", name)
		} else if !called && !excepted {
			t.Errorf("%s has no caller: remove it, or use it", name)
		}
	}
	if len(declared) < 1000 {
		t.Errorf("found only %d exported names", len(declared))
	}
}

// read returns the exported names of the tree as directory.Name, each with the number of its declarations, and how often each stands in code that
// is not a test, declarations included.
func read(t *testing.T) (declared, uses map[string]int) {
	t.Helper()
	root := filepath.Join("..", "..")
	declared, uses = map[string]int{}, map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		relative := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || relative == "bin" || relative == "test"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		directory := filepath.ToSlash(filepath.Dir(relative))
		count(file, directory, uses)
		if !isLibrary(relative) && !strings.HasSuffix(directory, "test") { // for example pkg/program/programtest
			for _, name := range exported(file) {
				if name == "Program" && strings.HasSuffix(directory, "/app") {
					continue // tests build the program of the package of this type
				}
				declared[directory+"."+name]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared, uses
}

// count adds the names that a file of a directory uses: of its own package, and of others of the module.
func count(file *ast.File, directory string, uses map[string]int) {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		path, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		if !is {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = path
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			if of, is := node.X.(*ast.Ident); is {
				uses[imported[of.Name]+"."+node.Sel.Name]++
			}
		case *ast.Ident:
			uses[directory+"."+node.Name]++
		}
		return true
	})
}

// exported returns the exported names that a file declares, without methods: interfaces of other modules call many of them.
func exported(file *ast.File) []string {
	var names []string
	add := func(ident *ast.Ident) {
		if ident.IsExported() {
			names = append(names, ident.Name)
		}
	}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			if declaration.Recv == nil {
				add(declaration.Name)
			}
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					for _, ident := range spec.Names {
						add(ident)
					}
				}
			}
		}
	}
	return names
}

func isLibrary(path string) bool {
	for _, library := range libraries {
		if strings.HasPrefix(path, library) {
			return true
		}
	}
	return false
}
