package expression

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

const (
	// maxLength is the maximum length of an expression in characters. It equals the limit in HealthCheck and also covers
	// lists of checks that the API server does not validate.
	maxLength = 4096
	// costLimit bounds the cost of one expression, in CEL's cost units. It is the limit of the API server for one
	// validation rule, which corresponds to about 0.1 seconds (PerCallLimit in k8s.io/apiserver/pkg/apis/cel).
	costLimit = 1_000_000
	// timeLimit bounds the time for all expressions of one object. A useful check takes microseconds, and thousands of
	// objects are checked one after the other.
	timeLimit = 100 * time.Millisecond
	// checkFrequency is the number of iterations after which CEL checks for interruption (CheckFrequency of the same
	// package).
	checkFrequency = 100
	// maxRange bounds lists.range, which allocates its memory before the cost is counted.
	maxRange = 10_000
	// maxProblems limits the reported problems of one expression. Later ones are often consequences of the first ones.
	maxProblems = 3
)

// environment defines what expressions may use: variables for the object, and the functions that the API server offers
// for all kinds of objects.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("object", cel.DynType),
		cel.Variable("metadata", cel.DynType),
		cel.Variable("spec", cel.DynType),
		cel.Variable("status", cel.DynType),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
		ext.Strings(),
		ext.Lists(ext.ListsMaxRangeSize(maxRange)),
		ext.Sets(),
	)
})

// compile compiles an expression that must yield a type, and returns the problems found. A type that is known only at
// run time is not a problem.
func compile(text string, yields *cel.Type) (cel.Program, []string) {
	if length := utf8.RuneCountInString(text); length > maxLength {
		return nil, []string{fmt.Sprintf("has %d characters, at most %d are allowed", length, maxLength)}
	}
	env, err := environment()
	if err != nil {
		return nil, []string{err.Error()}
	}
	ast, issues := env.Compile(text)
	// Not issues.Err(), which renders a source excerpt for each of possibly a thousand problems.
	if len(issues.Errors()) > 0 {
		return nil, describe(issues)
	}
	if output := ast.OutputType(); !output.IsExactType(yields) && !output.IsExactType(cel.DynType) {
		return nil, []string{fmt.Sprintf("yields %s, but must yield %s", cel.FormatCELType(output), yields)}
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit),
		cel.InterruptCheckFrequency(checkFrequency))
	if err != nil {
		return nil, []string{oneLine(err.Error())}
	}
	return program, nil
}

func describe(issues *cel.Issues) []string {
	var problems []string
	for _, problem := range issues.Errors() {
		if len(problems) == maxProblems {
			break
		}
		message := strings.TrimSuffix(oneLine(problem.Message), " (in container '')")
		if line := problem.Location.Line(); line > 0 { // some problems have no location
			message = fmt.Sprintf("line %d, column %d: %s", line, problem.Location.Column()+1, message)
		}
		problems = append(problems, message)
	}
	return problems
}
