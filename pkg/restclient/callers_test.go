package restclient

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere are files that make connections which are tuned in another one.
var elsewhere = map[string]string{
	"pkg/gardenlet/access/connection.go": "cmd/gardenlet/app/clusters.go",
	"pkg/nodeagent/identity/identity.go": "pkg/nodeagent/cluster/client.go",
}

// TestConnectionsAreTuned checks that each connection that the programs make themselves rejects redirects and watches without compression.
// The ones from kubeconfigs and service accounts are tuned where the programs start.
func TestConnectionsAreTuned(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[string]bool{}
	for _, directory := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			makes, tunes, err := connections(path)
			name, _ := filepath.Rel(root, path)
			found[filepath.ToSlash(name)] = makes
			if makes && !tunes && elsewhere[filepath.ToSlash(name)] == "" {
				t.Errorf("%s makes a rest.Config without restclient.Tune", name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for file := range elsewhere {
		if !found[file] {
			t.Errorf("%s makes no connection: remove it from the list", file)
		}
	}
}

// connections reports whether a file has a literal of rest.Config, and whether it uses this package.
func connections(path string) (makes, tunes bool, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return false, false, err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			makes = makes || isName(node.Type, "rest", "Config")
		case *ast.SelectorExpr:
			tunes = tunes || isName(node, "restclient", "Tune")
		}
		return true
	})
	return makes, tunes, nil
}

// isName reports whether an expression is a name of a package.
func isName(expression ast.Expr, of, name string) bool {
	selector, is := expression.(*ast.SelectorExpr)
	if !is || selector.Sel.Name != name {
		return false
	}
	from, is := selector.X.(*ast.Ident)
	return is && from.Name == of
}
