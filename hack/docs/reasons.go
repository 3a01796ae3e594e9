package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// resourcesAPI is the package of the ManagedResource.
const resourcesAPI = "pkg/apis/resources/v1alpha1"

// reason is a reason of conditions.
type reason struct{ Name, Status, Meaning, ToDo string }

var aboutReason = regexp.MustCompile(`^\w+ goes with status (\w+)(?: of (\w+))?: (.*?)(?: To do: (.*))?$`)

// reasons returns the reasons in the block of constants whose comment begins with a text. Each constant needs a comment
// with the status, the meaning and, except for goodReasons, the remedy.
func (c code) reasons(beginning string) ([]reason, error) {
	for declaration := range c[resourcesAPI].declarations(token.CONST) {
		if !strings.HasPrefix(declaration.Doc.Text(), beginning) {
			continue
		}
		var found []reason
		for _, spec := range declaration.Specs {
			for constant, value := range stringsOf(spec) {
				one, err := reasonOf(constant, value, spec)
				if err != nil {
					return nil, err
				}
				found = append(found, one)
			}
		}
		return found, nil
	}
	return nil, fmt.Errorf("%s has no constants with the comment %q", resourcesAPI, beginning)
}

// goodReasons do not require an action.
var goodReasons = []string{"ApplySucceeded", "ResourcesHealthy", "ResourcesRolledOut"}

func reasonOf(constant, value string, spec ast.Spec) (reason, error) {
	about, _ := spec.(*ast.ValueSpec)
	parts := aboutReason.FindStringSubmatch(sentence(about.Doc.Text()))
	if parts == nil {
		return reason{}, fmt.Errorf("the comment of %s is not of the form \"%s goes with status …: meaning. To do: …\"", constant, constant)
	}
	if parts[4] == "" && !slices.Contains(goodReasons, value) {
		return reason{}, fmt.Errorf("the comment of %s does not say what to do", constant)
	}
	if strings.Contains(about.Comment.Text(), "after the kind") {
		value = "<Kind>" + value
	}
	status := parts[1]
	if of := strings.TrimPrefix(parts[2], "Resources"); of != "" && of != "both" {
		status = parts[2] + " " + status
	} else if of == "both" {
		status = "both " + status
	}
	return reason{value, status, capital(parts[3]), capital(parts[4])}, nil
}

func reasonsTable(reasons []reason) string {
	var out strings.Builder
	out.WriteString("| reason | status | meaning | what to do |\n|---|---|---|---|\n")
	for _, one := range reasons {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", one.Name, one.Status, cell(one.Meaning), cell(one.ToDo))
	}
	return out.String()
}

// event is a reason of Events.
type event struct{ Reason, Type, On, When string }

var (
	eventsMarker = regexp.MustCompile(`(?m)^\+events:on=(.*)$`)
	aboutEvent   = regexp.MustCompile(`^(Normal|Warning): (.*)$`)
)

// events returns the reasons in blocks of constants with the marker +events:on=, which names the kind of the involved
// object. Each constant needs a comment at the end of its line with the type and the cause.
func (c code) events() ([]event, error) {
	var found []event
	for _, directory := range c.directories() {
		for declaration := range c[directory].declarations(token.CONST) {
			// Text omits directives, and a marker may look like a directive.
			on := eventsMarker.FindStringSubmatch(declaration.Doc.Text())
			if on == nil {
				continue
			}
			for _, spec := range declaration.Specs {
				for constant, value := range stringsOf(spec) {
					about, _ := spec.(*ast.ValueSpec)
					parts := aboutEvent.FindStringSubmatch(sentence(about.Comment.Text()))
					if parts == nil {
						return nil, fmt.Errorf("%s of %s has no comment \"Warning: …\" or \"Normal: …\" at the end of its line", constant, directory)
					}
					found = append(found, event{value, parts[1], on[1], parts[2]})
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b event) int {
		return cmp.Or(strings.Compare(a.On, b.On), strings.Compare(a.Reason, b.Reason))
	})
	return found, nil
}

func eventsTable(events []event) string {
	var out strings.Builder
	out.WriteString("| on | type | reason | when |\n|---|---|---|---|\n")
	for _, one := range events {
		fmt.Fprintf(&out, "| %s | %s | `%s` | %s |\n", one.On, one.Type, one.Reason, cell(one.When))
	}
	return out.String()
}

// word matches reasons.
var word = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][a-z]*)+$`)

// literalReasons returns the reasons that the code passes as literals, not as constants, to the functions that write
// conditions or Events.
func (c code) literalReasons() []string {
	takers := []string{"Eventf", "NewStatement", "warn", "inform", "tell"}
	structs := []string{"verdict", "Statement", "problem", "Problem", "finding", "problemError"}
	var found []string
	note := func(directory string, expressions []ast.Expr) {
		for _, expression := range expressions {
			if pair, is := expression.(*ast.KeyValueExpr); is {
				expression = pair.Value
			}
			if text, err := (&sources{}).text(expression); err == nil && word.MatchString(text) {
				found = append(found, directory+": "+text)
			}
		}
	}
	for _, directory := range c.directories() {
		if strings.HasPrefix(directory, "pkg/cli") {
			continue
		}
		c[directory].calls(func(name string, call *ast.CallExpr) bool {
			if slices.Contains(takers, name) {
				note(directory, call.Args)
			}
			return true
		})
		for _, file := range c[directory].files {
			ast.Inspect(file, func(node ast.Node) bool {
				if literal, is := node.(*ast.CompositeLit); is && slices.Contains(structs, typeName(literal.Type)) {
					note(directory, literal.Elts)
				}
				return true
			})
		}
	}
	return found
}

func typeName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
