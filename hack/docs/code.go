package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// code has the Go files of the packages below pkg, without tests, by the directory of the package.
type code map[string]*sources

type sources struct {
	files []*ast.File
	// constants are the constants whose value is a string literal.
	constants map[string]string
}

func readCode(root string) (code, error) {
	found, set := code{}, token.NewFileSet()
	base := filepath.Join(root, "pkg")
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // of the repository
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, path, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		directory = filepath.ToSlash(directory)
		if found[directory] == nil {
			found[directory] = &sources{constants: map[string]string{}}
		}
		found[directory].files = append(found[directory].files, file)
		return nil
	})
	for _, s := range found {
		s.collectConstants()
	}
	return found, err
}

// directories returns all directories, sorted.
func (c code) directories() []string { return slices.Sorted(maps.Keys(c)) }

func (s *sources) collectConstants() {
	for declaration := range s.declarations(token.CONST) {
		for _, spec := range declaration.Specs {
			for name, value := range stringsOf(spec) {
				s.constants[name] = value
			}
		}
	}
}

// declarations yields the top-level general declarations of a kind.
func (s *sources) declarations(kind token.Token) func(yield func(*ast.GenDecl) bool) {
	return func(yield func(*ast.GenDecl) bool) {
		for _, file := range s.files {
			for _, declaration := range file.Decls {
				if general, is := declaration.(*ast.GenDecl); is && general.Tok == kind && !yield(general) {
					return
				}
			}
		}
	}
}

// calls yields all calls of functions and methods with their names, without package or receiver.
func (s *sources) calls(yield func(name string, call *ast.CallExpr) bool) {
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, is := node.(*ast.CallExpr)
			if !is {
				return true
			}
			switch function := call.Fun.(type) {
			case *ast.SelectorExpr:
				return yield(function.Sel.Name, call)
			case *ast.Ident:
				return yield(function.Name, call)
			}
			return true
		})
	}
}

// stringsOf returns the names and values of a declaration with string literals.
func stringsOf(spec ast.Spec) map[string]string {
	values := map[string]string{}
	value, is := spec.(*ast.ValueSpec)
	if !is {
		return nil
	}
	for i, name := range value.Names {
		if i >= len(value.Values) {
			break
		}
		if literal, is := value.Values[i].(*ast.BasicLit); is && literal.Kind == token.STRING {
			values[name.Name], _ = strconv.Unquote(literal.Value)
		}
	}
	return values
}

// text evaluates an expression of string literals, constants of the package and +.
func (s *sources) text(expression ast.Expr) (string, error) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return strconv.Unquote(e.Value)
		}
	case *ast.Ident:
		if value, is := s.constants[e.Name]; is {
			return value, nil
		}
	case *ast.BinaryExpr:
		left, err := s.text(e.X)
		if err != nil {
			return "", err
		}
		right, err := s.text(e.Y)
		return left + right, err
	}
	return "", fmt.Errorf("%T is not a supported expression for a text", expression)
}

// sentence joins the lines of a comment up to the first marker.
func sentence(comment string) string {
	var lines []string
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "+") {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// capital capitalizes the first letter of a text.
func capital(text string) string {
	if text == "" || strings.HasPrefix(text, "kubectl") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// cell escapes a text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*").Replace(text)
}
