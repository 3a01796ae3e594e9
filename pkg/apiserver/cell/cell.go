// Package cell formats values of the garden's kinds for the table output of kubectl.
package cell

import (
	"fmt"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The contents of cells without a value.
const (
	None    = "<none>"
	Pending = "<pending>"
	Unknown = "<unknown>"
)

// Text returns an optional text, or None.
func Text(text *string) string {
	if text == nil || *text == "" {
		return None
	}
	return *text
}

// OrPending returns a text, or Pending if it is not set yet.
func OrPending(text string) string {
	if text == "" {
		return Pending
	}
	return text
}

// OrUnknown returns a text, or Unknown if it is not set.
func OrUnknown(text string) string {
	if text == "" {
		return Unknown
	}
	return text
}

// Operation returns the type, state and progress of an operation.
func Operation(operation *gardencorev1beta1.LastOperation) string {
	if operation == nil {
		return Pending
	}
	return fmt.Sprintf("%s %s (%d%%)", operation.Type, operation.State, operation.Progress)
}

// State returns the state of an operation.
func State(operation *gardencorev1beta1.LastOperation) string {
	if operation == nil {
		return Pending
	}
	return string(operation.State)
}

// Progress returns the progress of an operation, in percent.
func Progress(operation *gardencorev1beta1.LastOperation) any {
	if operation == nil {
		return Pending
	}
	return int64(operation.Progress)
}

// Condition returns the status of a condition.
func Condition(conditions []gardencorev1beta1.Condition, of gardencorev1beta1.ConditionType) string {
	for _, condition := range conditions {
		if condition.Type == of {
			return string(condition.Status)
		}
	}
	return Unknown
}
