package diff

import (
	"fmt"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
)

func (o *options) print(c *console.Console, results []preview.Result) error {
	switch o.output.Format {
	case console.FormatJSON, console.FormatYAML:
		return c.PrintValue(o.output.Format, results)
	}
	printed := 0
	for i := range results {
		if !results[i].Differs() && len(results) > 1 {
			continue // print only those that differ
		}
		if printed++; printed > 1 && o.output.Format == "" {
			fmt.Fprintln(c.Screen)
		}
		if err := o.printOne(c, &results[i]); err != nil {
			return err
		}
	}
	if printed == 0 && o.output.Format == "" {
		c.Warn("Nothing would change in any of the %d ManagedResources.", len(results))
	}
	return nil
}

func (o *options) printOne(c *console.Console, r *preview.Result) error {
	if o.output.Format == console.FormatName {
		for i := range r.Changes {
			if r.Changes[i].Verb != preview.Nothing {
				fmt.Fprintln(c.Screen, r.Changes[i].Title())
			}
		}
		return nil
	}
	if err := r.PrintHead(c, r.Summary()); err != nil {
		return err
	}
	for i := range r.Changes {
		if err := o.printEntry(c, &r.Changes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) printEntry(c *console.Console, e *preview.Entry) error {
	if e.Verb == preview.Nothing {
		return nil
	}
	title := fmt.Sprintf("%s %s", e.Sign(), e.Title())
	switch {
	case e.Error != "":
		title += ": " + e.Error
	case e.Reason != "" && e.Verb != preview.Create:
		title += ": " + e.Reason
	}
	if err := c.Screen.Paragraph("", e.Style(), title); err != nil || o.brief {
		return err
	}
	return e.PrintLines(c)
}
