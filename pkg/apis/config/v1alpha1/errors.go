package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxProblems is the maximum number of problems in a message, and maxProblemRunes the maximum length of each.
	maxProblems     = 50
	maxProblemRunes = 1000
)

// invalidError holds all problems of a configuration.
type invalidError struct {
	problems field.ErrorList
}

// newInvalidError sorts the problems, so that the same file always gets the same message.
func newInvalidError(problems field.ErrorList) *invalidError {
	slices.SortFunc(problems, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.ErrorBody(), b.ErrorBody()))
	})
	return &invalidError{problems: problems}
}

// Error lists the problems, one per line.
func (e *invalidError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d problem", len(e.problems))
	if len(e.problems) > 1 {
		text.WriteByte('s')
	}
	text.WriteByte(':')
	for _, problem := range e.problems[:min(len(e.problems), maxProblems)] {
		text.WriteString("\n  - " + oneLine(problem.Error()))
	}
	if more := len(e.problems) - maxProblems; more > 0 {
		fmt.Fprintf(&text, "\n  and %d more", more)
	}
	return text.String()
}

// Unwrap returns the problems as *field.Error.
func (e *invalidError) Unwrap() []error {
	errs := make([]error, len(e.problems))
	for i, problem := range e.problems {
		errs[i] = problem
	}
	return errs
}

// oneLine replaces line breaks and terminal codes in a text, so that a key cannot forge lines of the message.
func oneLine(text string) string {
	runes := []rune(text)
	if len(runes) > maxProblemRunes {
		runes = append(runes[:maxProblemRunes:maxProblemRunes], '…')
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = unicode.ReplacementChar
		}
	}
	return string(runes)
}
