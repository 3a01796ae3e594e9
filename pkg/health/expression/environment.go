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
	// maxLength is the length of an expression in characters. It is the one in HealthCheck, for lists of checks that the
	// API server does not validate.
	maxLength = 4096
	// costLimit bounds the cost of one expression, as CEL counts it. It is the limit of the API server for a validation
	// rule, which it takes for about 0.1 seconds (PerCallLimit in k8s.io/apiserver/pkg/apis/cel).
	costLimit = 1_000_000
	// timeLimit bounds the time for all expressions of one object. A useful check takes microseconds; thousands of objects
	// are checked one after the other.
	timeLimit = 100 * time.Millisecond
	// checkFrequency is the number of iterations after which CEL looks at the time (CheckFrequency of the same package).
	checkFrequency = 100
	// maxRange bounds lists.range, which fills the memory before its cost is counted.
	maxRange = 10_000
	// maxProblems limits the problems of one expression that are reported; after the first ones they tend to be consequences.
	maxProblems = 3
)

// environment is what the expressions may use: variables for the object, and the functions that the API server offers for
// any kind of object.
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

// compile compiles an expression that has to yield a type, and returns what is wrong with it. A type that is not known
// before the expression runs is not wrong.
func compile(text string, yields *cel.Type) (cel.Program, []string) {
	if length := utf8.RuneCountInString(text); length > maxLength {
		return nil, []string{fmt.Sprintf("has %d characters, at most %d are allowed", length, maxLength)}
	}
	env, err := environment()
	if err != nil {
		return nil, []string{err.Error()}
	}
	ast, issues := env.Compile(text)
	// Not Err, which draws a picture of each of what may be a thousand problems.
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
		if line := problem.Location.Line(); line > 0 { // some problems are not at any place
			message = fmt.Sprintf("line %d, column %d: %s", line, problem.Location.Column()+1, message)
		}
		problems = append(problems, message)
	}
	return problems
}
