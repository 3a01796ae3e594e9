// Package expression evaluates the health checks that users write as CEL expressions in the spec of a ManagedResource
// or in the configuration of the resource-manager.
//
// The only input of an expression is the object. Even the time is not available, so the same object always gets the
// same verdict. The package keeps no state, and all of it is safe for concurrent use.
//
// The limits (see environment.go) stop carelessly written expressions. Authors of expressions must still be trusted: a
// single call of a CEL function, such as replace, cannot be interrupted.
package expression

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Checks are compiled health checks, by kind. The zero value and nil contain no checks.
type Checks struct {
	byKind map[schema.GroupKind]*Check
}

// Check is a compiled health check of one kind. Absent expressions are nil.
type Check struct {
	failed, healthy, progressing, message *expression
}

// expression is a compiled expression.
type expression struct {
	text    string
	program cel.Program
}

// Compile compiles health checks. The error joins all problems. Each line names the index in the list and the field
// and, for a problem in an expression, the position, such as "healthChecks[1].failed: line 1, column 8: …". HealthCheck
// documents the rules.
func Compile(checks []resourcesv1alpha1.HealthCheck) (*Checks, error) {
	compiled := &Checks{byKind: make(map[schema.GroupKind]*Check, len(checks))}
	first := map[schema.GroupKind]int{}
	var errs []error
	for i, written := range checks {
		path := fmt.Sprintf("healthChecks[%d]", i)
		kind := schema.GroupKind{Group: written.Group, Kind: written.Kind}
		if earlier, twice := first[kind]; twice {
			errs = append(errs, fmt.Errorf("%s: healthChecks[%d] is for the kind %s already", path, earlier, kind))
		} else {
			first[kind] = i
		}
		check, err := compileCheck(&written, path)
		errs = append(errs, err)
		compiled.byKind[kind] = check
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return compiled, nil
}

func compileCheck(check *resourcesv1alpha1.HealthCheck, path string) (*Check, error) {
	var errs []error
	switch {
	case check.Kind == "":
		errs = append(errs, fmt.Errorf("%s.kind: must not be empty", path))
	case check.Group == "" && check.Kind == "Secret":
		errs = append(errs, fmt.Errorf("%s.kind: must not be Secret: the data of Secrets is never read", path))
	}
	if check.Failed == "" && check.Healthy == "" && check.Progressing == "" {
		errs = append(errs, fmt.Errorf("%s: at least one of healthy, progressing and failed is needed", path))
	}
	compiled := &Check{}
	for _, part := range []struct {
		field, text string
		yields      *cel.Type
		target      **expression
	}{
		{"failed", check.Failed, cel.BoolType, &compiled.failed},
		{"healthy", check.Healthy, cel.BoolType, &compiled.healthy},
		{"progressing", check.Progressing, cel.BoolType, &compiled.progressing},
		{"message", check.Message, cel.StringType, &compiled.message},
	} {
		if part.text == "" {
			continue
		}
		program, problems := compile(part.text, part.yields)
		for _, problem := range problems {
			errs = append(errs, fmt.Errorf("%s.%s: %s", path, part.field, problem))
		}
		*part.target = &expression{text: part.text, program: program}
	}
	return compiled, errors.Join(errs...)
}

// For returns the check for a kind, or nil if there is none.
func (c *Checks) For(kind schema.GroupKind) *Check {
	if c == nil {
		return nil
	}
	return c.byKind[kind]
}

// Kinds returns the kinds that have a check, sorted by group and kind.
func (c *Checks) Kinds() []schema.GroupKind {
	if c == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(c.byKind), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}
