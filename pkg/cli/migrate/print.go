package migrate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

const (
	// taken is the sign of an object that is taken over unchanged.
	taken = "="
	// maxFields is the maximum number of fields in one line.
	maxFields = 8
)

func (o *options) print(c *console.Console, reports []report, predecessors []Predecessor) error {
	for i := range reports {
		if i > 0 {
			fmt.Fprintln(c.Screen)
		}
		if err := o.printReport(c, &reports[i]); err != nil {
			return err
		}
	}
	if len(predecessors) == 0 {
		fmt.Fprintln(c.Screen, "No other tool applies any of these objects.")
		return nil
	}
	fmt.Fprintln(c.Screen, "\n"+c.Screen.Paint(screen.Strong, "Steps for the other tools"))
	for _, predecessor := range predecessors {
		if err := printPredecessor(c, predecessor); err != nil {
			return err
		}
	}
	return c.Screen.Paragraph("  ", screen.Plain,
		"If these objects come from Git or from another tool, change them there, too: otherwise the changes are reverted.")
}

func (o *options) printReport(c *console.Console, r *report) error {
	summarized := r.Result
	summarized.Changes = nil
	count := 0
	for _, object := range r.Changes {
		summarized.Changes = append(summarized.Changes, object.Entry)
		if len(object.Owners) > 0 {
			count++
		}
	}
	summary := summarized.Summary()
	if count > 0 {
		summary += fmt.Sprintf("; %d of them currently applied by another tool", count)
	}
	if err := r.PrintHead(c, summary); err != nil {
		return err
	}
	for i := range r.Changes {
		object := &r.Changes[i]
		if object.Verb == preview.Nothing && len(object.Owners) == 0 {
			continue // the resource-manager already applies it
		}
		if err := o.printObject(c, object); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) printObject(c *console.Console, object *object) error {
	title := cmp.Or(object.Sign(), taken) + " " + object.Title()
	if len(object.Owners) > 0 {
		names := make([]string, 0, len(object.Owners))
		for _, owner := range object.Owners {
			names = append(names, owner.String())
		}
		title += ", applied by " + strings.Join(names, " and ")
	}
	if object.Error != "" {
		title += ": " + object.Error
	}
	if err := c.Screen.Paragraph("", object.Style(), title); err != nil || o.brief {
		return err
	}
	for _, line := range object.handoverLines() {
		if err := c.Screen.Paragraph("    ", screen.Faint, line); err != nil {
			return err
		}
	}
	return object.PrintLines(c)
}

// handoverLines describes the field managers before and after the handover.
func (o *object) handoverLines() []string {
	if len(o.Managers) == 0 {
		return nil
	}
	owners := make([]string, 0, len(o.Managers))
	for _, manager := range o.Managers {
		owners = append(owners, fmt.Sprintf("%s (%s) %d", manager.Name, manager.Operation, manager.Fields))
	}
	lines := []string{"Owned fields: " + strings.Join(owners, ", ")}
	if o.Taken > 0 {
		lines[0] += fmt.Sprintf("; %d move to the resource-manager", o.Taken)
	}
	for _, manager := range o.Managers {
		if len(manager.Keeps) > 0 {
			lines = append(lines, fmt.Sprintf("Kept by %s: %s", manager.Name, enumerate(manager.Keeps)))
		}
	}
	if len(o.Removed) > 0 {
		lines = append(lines, "Removed, because they are not in the manifests: "+enumerate(o.Removed))
	}
	return lines
}

func enumerate(fields []string) string {
	if len(fields) > maxFields {
		return fmt.Sprintf("%s and %d more", strings.Join(fields[:maxFields], ", "), len(fields)-maxFields)
	}
	return strings.Join(fields, ", ")
}

func printPredecessor(c *console.Console, predecessor Predecessor) error {
	fmt.Fprintf(c.Screen, "  %s: %s\n", screen.OneLine(predecessor.String()), screen.Count(predecessor.Objects, "object"))
	for _, step := range predecessor.Steps {
		if err := c.Screen.Paragraph("    ", screen.Plain, step.Do); err != nil {
			return err
		}
		if step.Command != "" { // do not wrap it, so that it can be copied
			fmt.Fprintln(c.Screen, "      "+screen.OneLine(step.Command))
		}
	}
	return nil
}
