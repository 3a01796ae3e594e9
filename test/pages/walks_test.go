package pages

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// walk is a table in CONTRIBUTING.md with the files that one pass of a flow visits, in their order. A file that appears
// again is a return: a reader who follows the pass opens it again to read another function.
type walk struct {
	title string
	// dir is the directory of the flow below pkg. Other directories may be on the walk, too.
	dir string
	// start is called by controller-runtime. files and returns are the maximum numbers.
	start          string
	files, returns int
}

// TestWalkOfShoot checks the walk of one new Shoot.
func TestWalkOfShoot(t *testing.T) {
	walk{title: "The walk of one new Shoot", dir: "shoot", start: "reconciler.Reconcile", files: 35, returns: 10}.check(t)
}

// TestWalkOfSeed checks the walk of one new Seed.
func TestWalkOfSeed(t *testing.T) {
	walk{title: "The walk of one new Seed", dir: "seed", start: "reconciler.Reconcile", files: 25, returns: 6}.check(t)
}

// check checks that a function on the walk is declared in its file and that a function before it mentions it. The functions
// on the walk may call functions of other files of the flow only conditionally.
func (w walk) check(t *testing.T) {
	t.Helper()
	rows := rowsOf(t, "\n### "+w.title+"\n", "\n### ", 2)
	var files []string
	returns := 0
	mentioned, always := map[string]bool{baseName(w.start): true}, map[string]string{}
	for _, row := range rows {
		file := quoted(row[0])[0]
		if slices.Contains(files, file) {
			returns++
		} else {
			files = append(files, file)
		}
		declared := declarationsOf(t, filepath.Join(root(t), "pkg", file))
		var functions []*ast.FuncDecl
		for _, name := range quoted(row[1]) {
			function, is := declared[name].(*ast.FuncDecl)
			if !is {
				t.Errorf("%s does not declare the function %s", file, name)
				continue
			}
			functions = append(functions, function)
			mentions(function.Body, mentioned)
			if filepath.Dir(file) == w.dir {
				unconditional(function.Body, func(callee string) { always[callee] = name })
			}
		}
		for _, function := range functions {
			if !mentioned[function.Name.Name] {
				t.Errorf("%s: no function before mentions %s", file, function.Name.Name)
			}
		}
	}
	if len(files) > w.files || returns > w.returns {
		t.Errorf("%s visits %d files with %d returns, want at most %d and %d", w.title, len(files), returns, w.files, w.returns)
	}
	t.Logf("%s: %d files, %d returns", w.title, len(files), returns)
	w.checkOthers(t, files, always)
}

// checkOthers checks that the walk calls no function of the other files of the flow unconditionally.
func (w walk) checkOthers(t *testing.T, files []string, always map[string]string) {
	t.Helper()
	dir := filepath.Join(root(t), "pkg", w.dir)
	var on, others []string
	for _, name := range productionFiles(t, dir) {
		if slices.Contains(files, w.dir+"/"+name) {
			on = append(on, name)
		} else {
			others = append(others, name)
		}
	}
	elsewhere := namesDeclaredOnlyIn(t, dir, others, on)
	for callee, caller := range always {
		if elsewhere[callee] {
			t.Errorf("%s always calls %s, whose file is not on the walk", caller, callee)
		}
	}
}

// unconditional reports the functions that a function calls in any case, unless it fails before. It does not include those
// after an early return for another reason than an error.
func unconditional(body *ast.BlockStmt, found func(callee string)) {
	for _, statement := range body.List {
		branch, is := statement.(*ast.IfStmt)
		if !is {
			callsIn(statement, found)
			continue
		}
		if branch.Init != nil {
			callsIn(branch.Init, found)
		}
		callsIn(branch.Cond, found)
		failure := map[string]bool{}
		mentions(branch.Cond, failure)
		_, ends := branch.Body.List[len(branch.Body.List)-1].(*ast.ReturnStmt)
		if ends && !failure["err"] {
			return
		}
	}
}

// callsIn reports the functions that a statement or an expression calls in any case.
func callsIn(node ast.Node, found func(callee string)) {
	ast.Inspect(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.CaseClause, *ast.FuncLit, *ast.RangeStmt, *ast.ForStmt:
			return false
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				callsIn(node.X, found)
				return false
			}
		case *ast.CallExpr:
			switch called := node.Fun.(type) {
			case *ast.Ident:
				found(called.Name)
			case *ast.SelectorExpr:
				found(called.Sel.Name)
			}
		}
		return true
	})
}
