package expression

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

const (
	// maxText is the maximum length of a text in a Verdict, in bytes. The message of a condition must have room for many
	// of them.
	maxText = 256
	// noStatus is the text for an object that has no status yet.
	noStatus = "has no status yet"
)

var errTimeLimit = fmt.Errorf("it takes longer than %s", timeLimit)

// Verdict is the result of a check of one object. The zero value means healthy and not progressing. Texts have one line
// and at most 256 bytes.
type Verdict struct {
	// Unhealthy is the reason why the object is not healthy; empty if it is healthy.
	Unhealthy string
	// Progressing describes the change in progress; empty if there is none.
	Progressing string
	// Err names the expression that could not be evaluated, and the reason. It is empty if all necessary expressions could
	// be evaluated. Otherwise the other fields hold the earlier findings.
	Err string
}

// Evaluate applies the check to an object in the form of unstructured.Unstructured, and does not change it. If the
// expression failed is true, the object is unhealthy and not progressing. Otherwise it is unhealthy if the expression
// healthy is false, and progressing if the expression progressing is true. An object with a missing or empty status
// that lacks a field that an expression reads was not processed by its controller yet: it is unhealthy and progressing.
// If an expression cannot be evaluated, costs too much, takes more than 100 ms or is interrupted by ctx, the Verdict
// has Err set.
func (c *Check) Evaluate(ctx context.Context, object map[string]any) Verdict {
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, errTimeLimit)
	defer cancel()
	run := evaluation{check: c, variables: map[string]any{
		"object": object, "metadata": part(object, "metadata"), "spec": part(object, "spec"), "status": part(object, "status"),
	}}
	verdict, err := run.verdict(ctx)
	switch {
	case err == nil:
	case isMissingKey(err) && isEmpty(object["status"]):
		verdict = Verdict{Unhealthy: noStatus, Progressing: noStatus}
	default:
		verdict.Err = shorten(err.Error(), maxText)
	}
	return verdict
}

// evaluation is one evaluation of a check.
type evaluation struct {
	check     *Check
	variables map[string]any
}

// verdict evaluates the expressions in order. With an error, it also returns the earlier findings.
func (e *evaluation) verdict(ctx context.Context) (Verdict, error) {
	var verdict Verdict
	failed, err := e.holds(ctx, "failed", e.check.failed, false)
	if err != nil {
		return verdict, err
	}
	if failed {
		verdict.Unhealthy = e.explain(ctx, "failed: "+e.check.failed.text)
		return verdict, nil
	}
	healthy, err := e.holds(ctx, "healthy", e.check.healthy, true)
	if err != nil {
		return verdict, err
	}
	if !healthy {
		verdict.Unhealthy = e.explain(ctx, "not healthy: "+e.check.healthy.text)
	}
	progressing, err := e.holds(ctx, "progressing", e.check.progressing, false)
	if err != nil {
		return verdict, err
	}
	if progressing {
		verdict.Progressing = e.explain(ctx, e.check.progressing.text)
	}
	return verdict, nil
}

// holds reports whether the condition in a field is true. It returns the default if there is no condition.
func (e *evaluation) holds(ctx context.Context, field string, condition *expression, otherwise bool) (bool, error) {
	if condition == nil {
		return otherwise, nil
	}
	value, err := e.value(ctx, condition)
	if err != nil {
		return false, fmt.Errorf("%s: %w", field, err)
	}
	holds, isBool := value.(types.Bool)
	if !isBool {
		return false, fmt.Errorf("%s: yields %s, but must yield bool", field, value.Type().TypeName())
	}
	return bool(holds), nil
}

// explain returns the result of the expression message, or the default if that does not exist or yields "". If it
// fails, the default is followed by the error in parentheses.
func (e *evaluation) explain(ctx context.Context, otherwise string) string {
	if e.check.message == nil {
		return shorten(otherwise, maxText)
	}
	value, err := e.value(ctx, e.check.message)
	text, isString := value.(types.String)
	if err == nil && !isString {
		err = fmt.Errorf("yields %s, but must yield string", value.Type().TypeName())
	}
	if err != nil {
		suffix := " (" + shorten("message: "+err.Error(), maxText/2) + ")"
		return shorten(otherwise, maxText-len(suffix)) + suffix
	}
	return cmp.Or(shorten(string(text), maxText), shorten(otherwise, maxText))
}

// value evaluates an expression.
func (e *evaluation) value(ctx context.Context, expr *expression) (ref.Val, error) {
	value, _, err := expr.program.ContextEval(ctx, e.variables)
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return nil, fmt.Errorf("runs too long: it costs more than %d", costLimit)
	case errors.Is(err, errTimeLimit):
		return nil, fmt.Errorf("runs too long: %w", errTimeLimit)
	}
	return value, err
}

// part returns a field of an object. It returns an empty map for a missing field, so that has() works on the variable.
func part(object map[string]any, field string) any {
	if value := object[field]; value != nil {
		return value
	}
	return map[string]any{}
}

func isEmpty(status any) bool {
	fields, isMap := status.(map[string]any)
	return status == nil || isMap && len(fields) == 0
}

// isMissingKey reports whether an expression accessed a missing field. CEL has no type for that error.
func isMissingKey(err error) bool {
	var failure *types.Err
	return errors.As(err, &failure) && strings.HasPrefix(failure.Error(), "no such key: ")
}

// oneLine replaces every run of white space with one space.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// shorten returns a text on one line, with at most limit bytes.
func shorten(text string, limit int) string { return conditiontext.Shorten(oneLine(text), limit) }
