package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ruleRow is a row of the table of kinds: a kind, and the number of its rules.
var ruleRow = regexp.MustCompile(`(?m)^\| (\w+) \| (\d+) \|`)

// TestNumbersOfRules checks that each kind has at least as many rules in the tables of its tests as documented in
// validation-fleet.md.
func TestNumbersOfRules(t *testing.T) {
	counted := countRules(t)
	rows := ruleRow.FindAllStringSubmatch(pages(t)["validation-fleet.md"], -1)
	if len(rows) < 4 {
		t.Fatalf("validation-fleet.md has %d kinds", len(rows))
	}
	for _, row := range rows {
		want, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		if got := counted[strings.ToLower(row[1])]; got < want {
			t.Errorf("%s has %d rules in tests, validation-fleet.md documents %d", row[1], got, want)
		}
		t.Logf("%s: %d rules", row[1], counted[strings.ToLower(row[1])])
	}
}

// countRules returns the number of rows that expect an error, in the tables for each kind.
func countRules(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob("../pkg/apis/*/validation/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if call, is := node.(*ast.CallExpr); is && isTable(call) {
				countTable(call, counted)
			}
			return true
		})
	}
	return counted
}

// kindArguments are the functions that check a table of rules, with the index of the argument that names the kind.
var kindArguments = map[string]int{"checkRules": 1, "checkUpdates": 1, "checkStates": 1, "Check": 2, "CheckUpdate": 2}

// isTable reports whether a call checks a table of rules.
func isTable(call *ast.CallExpr) bool {
	index, is := kindArguments[fmt.Sprint(call.Fun)]
	return is && len(call.Args) > index+1
}

func countTable(call *ast.CallExpr, counted map[string]int) {
	kind, isLiteral := call.Args[kindArguments[fmt.Sprint(call.Fun)]].(*ast.BasicLit)
	table, isTable := call.Args[len(call.Args)-1].(*ast.CompositeLit)
	if !isLiteral || !isTable {
		return
	}
	for _, row := range table.Elts {
		if !expectsNothing(row) {
			counted[strings.Trim(kind.Value, `"`)]++
		}
	}
}

// expectsNothing reports whether a row ends in an empty text, which means that its change is allowed.
func expectsNothing(row ast.Expr) bool {
	switch row := row.(type) {
	case *ast.CompositeLit:
		return len(row.Elts) > 0 && expectsNothing(row.Elts[len(row.Elts)-1])
	case *ast.CallExpr:
		return len(row.Args) > 0 && expectsNothing(row.Args[len(row.Args)-1])
	case *ast.BasicLit:
		return row.Value == `""`
	}
	return false
}
