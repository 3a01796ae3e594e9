package explain

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// printer prints findings as text. It stops at the first error.
type printer struct {
	screen.Screen
	now time.Time
	err error
}

func (p *printer) line(indent string, style screen.Style, format string, args ...any) {
	if p.err == nil {
		p.err = p.Paragraph(indent, style, fmt.Sprintf(format, args...))
	}
}

// table prints rows. If their last cells do not fit, it prints them below their rows, wrapped.
func (p *printer) table(indent string, columns []screen.Column, rows [][]screen.Cell) {
	if p.err != nil || len(rows) == 0 {
		return
	}
	table := screen.Table{Columns: columns, Rows: rows, Bare: true}
	if p.Width > 0 && utf8.RuneCountInString(indent)+table.Width() > p.Width {
		p.list(indent, rows)
		return
	}
	for i := range rows {
		rows[i][0].Text = indent + rows[i][0].Text
	}
	p.err = p.Print(screen.Table{Columns: columns, Rows: rows, Bare: true})
}

// list prints rows with their last cells below them.
func (p *printer) list(indent string, rows [][]screen.Cell) {
	for _, row := range rows {
		last := len(row) - 1
		parts := make([]string, 0, last)
		for _, cell := range row[:last] {
			if cell.Text != "" {
				parts = append(parts, cell.Text)
			}
		}
		p.line(indent, row[1].Style, "%s", strings.Join(parts, "  "))
		if row[last].Text != "" {
			p.line(indent+"  ", row[last].Style, "%s", row[last].Text)
		}
	}
}

func (p *printer) age(when *time.Time) string {
	if when == nil {
		return ""
	}
	return console.Age(*when, p.now)
}

func (f *finding) printTo(to screen.Screen, now time.Time, next bool) error {
	p := &printer{Screen: to, now: now}
	if next {
		p.line("", screen.Plain, "")
	}
	title := fmt.Sprintf("ManagedResource %s/%s is %s", f.Namespace, f.Name, f.State)
	if since := p.age(f.Since); since != "" {
		title += " (for " + since + ")"
	}
	p.line("", screen.Strong, "%s", title)
	for _, hint := range f.Hints {
		p.line("  ", screen.Plain, "%s", hint)
	}
	p.relations(f)
	for i := range f.Objects {
		p.trouble(&f.Objects[i])
	}
	if f.More > 0 {
		p.line("", screen.Plain, "")
		p.line("  ", screen.Plain, "and %d more objects: kubectl mr tree %s -n %s --unhealthy", f.More, f.Name, f.Namespace)
	}
	p.ownConditions(f)
	p.events("  ", "Events of the ManagedResource", f.Events)
	return p.err
}

// relations prints the dependencies of a ManagedResource, and its special treatment of fields and finalizers.
func (p *printer) relations(f *finding) {
	stateOf := func(name string) string {
		if word := f.states[name]; word != "" {
			return " It is " + string(word) + "."
		}
		return ""
	}
	for _, dependency := range f.DependsOn {
		p.line("  ", screen.Plain, "Depends on %s, which %s.%s", dependency.Name, dependency.Required(), stateOf(dependency.Name))
	}
	for _, name := range f.DeletedAfter {
		p.line("  ", screen.Plain, "Is deleted after %s.%s", name, stateOf(name))
	}
	if f.DeletedAfter != nil && len(f.DeletedAfter) == 0 {
		p.line("  ", screen.Plain, "Is deleted without waiting for its dependents.")
	}
	for _, rule := range f.OnlyOnChange {
		p.line("  ", screen.Plain, "Sends only on changes: %s", rule)
	}
	if f.FinalizeDeletionAfter != "" && f.State != state.Deleting { // a hint names the time of a deletion in progress
		p.line("  ", screen.Plain, "Removes the finalizers of its objects %s after its deletion begins.", f.FinalizeDeletionAfter)
	}
}

// trouble prints the findings about an object.
func (p *printer) trouble(t *trouble) {
	p.line("", screen.Plain, "")
	name := t.Name
	if t.Namespace != "" {
		name = t.Namespace + "/" + name
	}
	text := fmt.Sprintf("%s %s is %s", t.Kind, name, t.Health)
	if since := p.age(t.Since); since != "" && !t.Health.IsWell() {
		text += " (for " + since + ")"
	}
	if t.Health.IsWell() {
		text = fmt.Sprintf("%s %s was changed by another field manager", t.Kind, name)
	}
	p.line("  ", t.Health.Style(), "%s", text)
	if t.Why != "" {
		p.line("    ", screen.Plain, "%s", t.Why)
	}
	if len(t.Conditions) > 0 && !t.Health.IsWell() {
		p.line("    ", screen.Faint, "Conditions")
		p.conditions("      ", t.Conditions)
	}
	if len(t.Below) > 0 {
		p.line("    ", screen.Faint, "Owned objects")
		var rows [][]screen.Cell
		for _, child := range t.Below {
			rows = append(rows, []screen.Cell{
				{Text: child.Kind + " " + child.Name}, {Text: string(child.Health), Style: child.Health.Style()}, {Text: p.age(child.Since)},
				{Text: screen.OneLine(child.Why)},
			})
		}
		p.table("      ", []screen.Column{{Least: 18, Middle: true}, {}, {}, {Least: 16}}, rows)
	}
	p.events("    ", "Events", t.Events)
	for _, taker := range t.Takers {
		p.line("    ", screen.Plain, "The field manager %q changed it %s ago: %s", taker.Manager, console.Age(taker.When, p.now),
			strings.Join(taker.Fields, ", "))
	}
}

func (p *printer) conditions(indent string, conditions []condition) {
	var rows [][]screen.Cell
	for _, each := range conditions {
		text := each.Reason
		if each.Message != "" {
			text += ": " + screen.OneLine(each.Message)
		}
		rows = append(rows, []screen.Cell{
			{Text: each.Type}, {Text: each.Status}, {Text: p.age(each.Since)}, {Text: strings.TrimPrefix(text, ": ")},
		})
	}
	p.table(indent, []screen.Column{{Least: 14}, {}, {}, {Least: 16}}, rows)
}

func (p *printer) events(indent, title string, events []snapshot.Event) {
	if len(events) == 0 {
		return
	}
	p.line(indent, screen.Faint, "%s", title)
	var rows [][]screen.Cell
	for _, event := range events {
		reason := screen.Cell{Text: event.Reason}
		if event.Type != "Normal" {
			reason.Style = screen.Busy
		}
		rows = append(rows, []screen.Cell{
			{Text: console.Age(event.Last, p.now)}, reason, {Text: event.Object}, {Text: screen.OneLine(event.Message)},
		})
	}
	p.table(indent+"  ", []screen.Column{{}, {Least: 10}, {Least: 14, Middle: true, Spare: 1}, {Least: 16}}, rows)
}

// ownConditions prints the conditions of the ManagedResource itself. It omits the messages of conditions that report
// no problem.
func (p *printer) ownConditions(f *finding) {
	if len(f.Conditions) == 0 {
		return
	}
	p.line("", screen.Plain, "")
	p.line("  ", screen.Faint, "Conditions of the ManagedResource")
	for _, each := range f.Conditions {
		reason := each.Reason
		if since := p.age(each.Since); since != "" {
			reason += ", for " + since
		}
		p.line("    ", styleOf(each), "%s is %s (%s)", each.Type, each.Status, reason)
		message := each.Message
		if len(f.Objects) > 0 && each.Type != string(resourcesv1alpha1.ResourcesApplied) {
			if message = withoutReported(message, f.Objects); styleOf(each) == screen.Plain {
				message = ""
			}
		}
		if message != "" && (styleOf(each) != screen.Plain || f.State != state.Ready) {
			p.line("      ", screen.Plain, "%s", message)
		}
	}
}

// styleOf highlights the conditions that report a problem.
func styleOf(each condition) screen.Style {
	wanted := "True"
	if each.Type == "ResourcesProgressing" {
		wanted = "False"
	}
	switch each.Status {
	case wanted:
		return screen.Plain
	case "False":
		return screen.Bad
	}
	return screen.Busy
}
