// Package preview computes what applying a ManagedResource would change. It uses the resource-manager's own plan and
// engine.
package preview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/dryrun"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Verb is the planned change of an object.
type Verb string

// The verbs.
const (
	Create  Verb = "create"
	Change  Verb = "change"
	Delete  Verb = "delete"
	Replace Verb = "replace"
	Release Verb = "release"
	Fail    Verb = "fail"
	Wait    Verb = "wait"
	Nothing Verb = "nothing"
)

// signs are the symbols of verbs.
var signs = map[Verb]string{Create: "+", Change: "~", Delete: "-", Replace: "±", Release: "~", Fail: "!", Wait: "…"}

// styles are the colours of verbs.
var styles = map[Verb]screen.Style{
	Create: screen.Good, Change: screen.Busy, Delete: screen.Bad, Replace: screen.Bad, Release: screen.Busy, Fail: screen.Bad,
}

// Result describes what applying a ManagedResource would change.
type Result struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	State     state.Word `json:"state,omitempty"`
	Changes   []Entry    `json:"changes"`
	// Problems are unreadable manifests, and a deletion that the prune guard prevents.
	Problems []string `json:"problems,omitempty"`
	// Blocked is the reason why the changes would have to wait.
	Blocked string `json:"blocked,omitempty"`
	// Deleted is set if the ManagedResource would be deleted.
	Deleted bool `json:"deleted,omitempty"`
}

// Entry describes the change of one object.
type Entry struct {
	Verb       Verb   `json:"verb"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Reason     string `json:"reason,omitempty"`
	Error      string `json:"error,omitempty"`
	// Diff is the diff, line by line.
	Diff  string `json:"diff,omitempty"`
	lines []Line
	// Ref is the object.
	Ref object.Ref `json:"-"`
}

// Differs reports whether anything would change or fail.
func (r Result) Differs() bool {
	return r.Deleted || len(r.Problems) > 0 || slices.ContainsFunc(r.Changes, func(e Entry) bool { return e.Verb != Nothing })
}

// entryOf returns the change of an object from the decision about it and its simulated result.
func entryOf(forecast managedresource.Forecast, copied *dryrun.Copy) (Entry, error) {
	e := Entry{
		APIVersion: forecast.GroupVersion().String(), Kind: forecast.Kind, Namespace: forecast.Namespace, Name: forecast.Name,
		Reason: forecast.Reason, Ref: forecast.Ref,
	}
	if failure := forecast.Err; failure != nil {
		e.Verb = Fail
		// Remove the name of the object, which is printed already.
		e.Error = strings.TrimPrefix(strings.TrimPrefix(failure.Error(), forecast.String()+": "), forecast.Key().String()+" ")
		return e, nil
	}
	var before, after *unstructured.Unstructured
	if copied != nil {
		before, after = copied.Before, copied.After
	}
	switch forecast.Action {
	case "Create":
		if e.Verb = Create; after == nil {
			after = &unstructured.Unstructured{}
			if err := json.Unmarshal(forecast.Body, &after.Object); err != nil {
				return e, fmt.Errorf("decode the manifest of %s: %w", forecast.Ref, err)
			}
		}
	case "Apply":
		if e.Verb = Change; copied != nil && copied.Replaced {
			e.Verb = Replace
		}
	case "Release", "HandOver":
		e.Verb = Release
	case "Delete":
		e.Verb = Delete
		return e, nil
	case "Wait":
		e.Verb = Wait
		return e, nil
	case "Fail", "Conflict":
		e.Verb = Fail
		return e, nil
	default:
		e.Verb = Nothing
		return e, nil
	}
	var err error
	if e.lines, err = Compare(before, after); err != nil {
		return e, err
	}
	if len(e.lines) == 0 {
		e.Verb = Nothing // only field ownership changes
	}
	e.Diff = textOf(e.lines)
	return e, nil
}

func textOf(lines []Line) string {
	var text strings.Builder
	for _, line := range lines {
		if line.Sign != '@' {
			text.WriteByte(line.Sign)
		}
		text.WriteString(line.Text + "\n")
	}
	return text.String()
}

// PrintHead prints a summary, and the problems that prevent changes.
func (r *Result) PrintHead(c *console.Console, summary string) error {
	fmt.Fprintln(c.Screen, c.Screen.Paint(screen.Strong, fmt.Sprintf("ManagedResource %s/%s: %s", r.Namespace, r.Name, summary)))
	if r.State == state.Suspended {
		fmt.Fprintln(c.Screen, "It is suspended: these changes will be made when it is resumed.")
	}
	for _, problem := range r.Problems {
		if err := c.Screen.Paragraph("! ", screen.Bad, problem); err != nil {
			return err
		}
	}
	if r.Blocked != "" {
		return c.Screen.Paragraph("… ", screen.Busy, "the changes are waiting: "+r.Blocked)
	}
	return nil
}

// PrintLines prints the diff.
func (e *Entry) PrintLines(c *console.Console) error {
	for _, line := range e.lines {
		text := "    " + string(rune(line.Sign)) + screen.Harmless(line.Text)
		if line.Sign == '@' {
			text = "    " + line.Text
		}
		if _, err := fmt.Fprintln(c.Screen, c.Screen.Paint(lineStyles[line.Sign], strings.TrimRight(text, " "))); err != nil {
			return err
		}
	}
	return nil
}

var lineStyles = map[byte]screen.Style{'+': screen.Good, '-': screen.Bad, '@': screen.Faint}

// Sign returns the symbol of the verb. It is empty for Nothing.
func (e *Entry) Sign() string { return signs[e.Verb] }

// Style returns the style of the verb.
func (e *Entry) Style() screen.Style { return styles[e.Verb] }

// Title returns the kind and name of the object.
func (e *Entry) Title() string {
	if e.Namespace == "" {
		return e.Kind + " " + e.Name
	}
	return e.Kind + " " + e.Namespace + "/" + e.Name
}

// Summary counts the changes by verb.
func (r *Result) Summary() string {
	counts := map[Verb]int{}
	for _, e := range r.Changes {
		counts[e.Verb]++
	}
	var parts []string
	for _, each := range []struct {
		verb Verb
		text string
	}{
		{Create, "to create"}, {Change, "to change"}, {Replace, "to replace"}, {Release, "to release"}, {Delete, "to delete"},
		{Fail, "would fail"}, {Wait, "would wait"}, {Nothing, "unchanged"},
	} {
		if counts[each.verb] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[each.verb], each.text))
		}
	}
	text := strings.Join(parts, ", ")
	if len(parts) == 0 {
		text = "no objects"
	}
	if r.Deleted {
		text = "is deleted, " + text
	}
	return text
}
