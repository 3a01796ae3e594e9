package fleet

import (
	"fmt"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// Report is the JSON and YAML output for an owner.
type Report struct {
	Kind          string                     `json:"kind"`
	Namespace     string                     `json:"namespace,omitempty"`
	Name          string                     `json:"name"`
	Seed          string                     `json:"seed,omitempty"`
	TechnicalID   string                     `json:"technicalID,omitempty"`
	Observed      bool                       `json:"observed"`
	LastOperation *corev1beta1.LastOperation `json:"lastOperation,omitempty"`
	LastErrors    []corev1beta1.LastError    `json:"lastErrors,omitempty"`
	Conditions    []corev1beta1.Condition    `json:"conditions,omitempty"`
}

// Report returns the JSON and YAML output for the owner.
func (o *Owner) Report() Report {
	return Report{
		Kind: o.Kind, Namespace: o.Namespace, Name: o.Name.Name, Seed: o.SeedName, TechnicalID: o.TechnicalID, Observed: o.Observed,
		LastOperation: o.LastOperation, LastErrors: o.LastErrors, Conditions: o.Conditions,
	}
}

// Word returns the state of the last operation, and its style.
func (o *Owner) Word() (string, screen.Style) {
	if o.LastOperation == nil {
		return "Pending", screen.Busy
	}
	switch state := o.LastOperation.State; state {
	case corev1beta1.LastOperationStateSucceeded:
		return string(state), screen.Good
	case corev1beta1.LastOperationStateProcessing, corev1beta1.LastOperationStatePending:
		return string(state), screen.Busy
	default:
		return string(state), screen.Bad
	}
}

// Operation summarizes the last operation in one line, without its description.
func (o *Owner) Operation(now time.Time) string {
	last := o.LastOperation
	if last == nil {
		return "no operation has begun"
	}
	text := fmt.Sprintf("%s %s, %d %%", last.Type, last.State, last.Progress)
	if age := console.Age(last.LastUpdateTime.Time, now); age != "" {
		text += ", " + age + " ago"
	}
	if !o.Observed {
		text += ", before the last change"
	}
	return text
}

// Description returns the description of the last operation. It is empty if the operation succeeded.
func (o *Owner) Description() string {
	if o.LastOperation == nil || o.LastOperation.State == corev1beta1.LastOperationStateSucceeded {
		return ""
	}
	return o.LastOperation.Description
}

// Print prints the last operation of an owner, its errors or else its description, and the conditions.
func (o *Owner) Print(to screen.Screen, now time.Time) error {
	title := o.String()
	if o.SeedName != "" {
		title += " on Seed " + o.SeedName
	}
	if err := to.Paragraph("", screen.Strong, title+": "+o.Operation(now)); err != nil {
		return err
	}
	if description := o.Description(); description != "" && len(o.LastErrors) == 0 {
		if err := to.Paragraph("  ", screen.Plain, description); err != nil {
			return err
		}
	}
	if err := o.printErrors(to); err != nil {
		return err
	}
	return o.printConditions(to, now)
}

func (o *Owner) printErrors(to screen.Screen) error {
	for _, each := range o.LastErrors {
		var parts []string
		if each.TaskID != nil {
			parts = append(parts, *each.TaskID)
		}
		for _, code := range each.Codes {
			parts = append(parts, string(code))
		}
		if err := to.Paragraph("  ", screen.Bad, strings.Join(append(parts, screen.OneLine(each.Description)), ": ")); err != nil {
			return err
		}
	}
	return nil
}

// printConditions prints a row for each condition. Conditions that are not True include their message.
func (o *Owner) printConditions(to screen.Screen, now time.Time) error {
	table := screen.Table{Columns: []screen.Column{{Least: 14}, {}, {Spare: 1}, {Least: 16}}, Bare: true}
	for _, condition := range o.Conditions {
		text, style := "", screen.Good
		switch condition.Status {
		case corev1beta1.ConditionTrue:
		case corev1beta1.ConditionFalse:
			style = screen.Bad
		default:
			style = screen.Busy
		}
		if condition.Status != corev1beta1.ConditionTrue {
			text = condition.Reason + ": " + screen.OneLine(condition.Message)
		}
		table.Rows = append(table.Rows, []screen.Cell{
			{Text: "  " + string(condition.Type)}, {Text: string(condition.Status), Style: style},
			{Text: console.Age(condition.LastTransitionTime.Time, now)}, {Text: text},
		})
	}
	if len(table.Rows) == 0 {
		return nil
	}
	return to.Print(table)
}
