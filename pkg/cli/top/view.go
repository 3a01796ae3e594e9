package top

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// line is a line on the screen.
type line struct {
	spans []screen.Span
	// chosen is set on the line of the selected item.
	chosen bool
}

func plain(format string, args ...any) line {
	return painted(screen.Plain, fmt.Sprintf(format, args...))
}

func painted(style screen.Style, text string) line {
	return line{spans: []screen.Span{{Text: screen.OneLine(text), Style: style}}}
}

// view returns the lines of the screen.
func (m *model) view() []line {
	var lines []line
	switch {
	case m.help:
		lines = m.viewHelp()
	case m.page != nil:
		lines = m.viewPage()
	default:
		lines = m.viewList()
	}
	if body := max(m.height-1, 0); len(lines) > body {
		lines = lines[:body]
	}
	for len(lines) < m.height-1 {
		lines = append(lines, line{})
	}
	lines = append(lines, m.bottom())
	for i := range lines {
		lines[i].cut(m.width)
	}
	return lines
}

// cut truncates a line that is too wide.
func (l *line) cut(width int) {
	for i, span := range l.spans {
		if width <= 0 {
			l.spans = l.spans[:i]
			return
		}
		characters := utf8.RuneCountInString(span.Text)
		if characters > width || characters == width && len(l.spans) > i+1 && strings.TrimSpace(l.spans[i+1].Text) != "" {
			l.spans[i].Text = screen.CutEnd(span.Text+" ", width)
			l.spans = l.spans[:i+1]
			return
		}
		width -= characters
	}
}

func (m *model) viewHelp() []line {
	lines := []line{painted(screen.Strong, "Keys"), {}}
	for text := range strings.SplitSeq(keys, "\n") {
		key, does := text[:15], text[15:]
		for i, part := range screen.Wrap(does, max(m.width-len(key), 20)) {
			if i > 0 {
				key = strings.Repeat(" ", len(key))
			}
			lines = append(lines, line{spans: []screen.Span{{Text: key, Style: screen.Strong}, {Text: part}}})
		}
	}
	return lines
}

// title describes the selection, or the lost connection.
func (m *model) title() line {
	if m.lost != nil {
		return painted(screen.Bad, fmt.Sprintf("NO CONNECTION to %s for %s, retrying: %v", m.host, console.Age(m.lostSince, m.now), m.lost))
	}
	return painted(screen.Strong, fmt.Sprintf("ManagedResources %s at %s", m.scope, m.host))
}

// viewOwner returns the line about the Shoot or Seed. It returns none without one.
func (m *model) viewOwner() []line {
	switch {
	case m.owner == nil:
		return nil
	case m.ownerLost != nil:
		return []line{painted(screen.Bad, fmt.Sprintf("%s cannot be read: %v", m.owner.Name, m.ownerLost))}
	}
	_, style := m.owner.Word()
	text := m.owner.Operation(m.now)
	if description := m.owner.Description(); description != "" {
		text += ": " + description
	}
	return []line{painted(style, text)}
}

// summary counts the ManagedResources in each state.
func (m *model) summary() line {
	if !m.loaded {
		return plain("Reading ManagedResources (%d) …", m.read)
	}
	var result line
	if !m.filter.isEmpty() {
		text := fmt.Sprintf("%d of %d shown (%s): ", len(m.shown), len(m.items), m.filter.text())
		result.spans = append(result.spans, screen.Span{Text: screen.Harmless(text)})
	}
	counts := m.counts()
	for _, word := range state.Words {
		if counts[word] > 0 {
			result.spans = append(result.spans, screen.Span{Text: fmt.Sprintf("%d %s", counts[word], word), Style: word.Style()},
				screen.Span{Text: "  "})
		}
	}
	return result
}

// text describes a filter.
func (f filter) text() string {
	var parts []string
	if f.unwell {
		parts = append(parts, "unhealthy")
	}
	if f.words != "" {
		parts = append(parts, "/"+f.words)
	}
	return strings.Join(parts, " ")
}

func (m *model) viewList() []line {
	lines := append(append([]line{m.title()}, m.viewOwner()...), m.summary())
	if len(m.shown) == 0 {
		return append(lines, line{}, m.nothingShown())
	}
	last := min(m.offset+m.rows(), len(m.shown))
	rows, err := screen.Lines(m.width, func(to screen.Screen) error { return to.Print(m.table(m.shown[m.offset:last])) })
	if err != nil {
		return append(lines, plain("%v", err))
	}
	for i, spans := range rows {
		lines = append(lines, line{spans: spans, chosen: m.offset+i-1 == m.cursor && i > 0})
	}
	return lines
}

// nothingShown explains why the list is empty.
func (m *model) nothingShown() line {
	switch {
	case !m.loaded:
		return line{}
	case len(m.items) == 0 && m.everywhere:
		return plain("No ManagedResources found %s.", m.scope)
	case len(m.items) == 0:
		return plain("No ManagedResources found %s. Use top -A for all.", m.scope)
	case m.filter.words != "":
		return plain("None of %d ManagedResources matches the filter. Press Esc to clear it.", len(m.items))
	}
	return plain("All %d ManagedResources are ready or suspended. Press u to show them.", len(m.items))
}

// Headers of columns whose width is computed from all items, so that it does not change while the list is scrolled.
const (
	headerNamespace = "NAMESPACE"
	headerName      = "NAME"
	headerClass     = "CLASS"
	headerState     = "STATE"
)

// marker precedes the selected item.
const marker = "> "

// table returns the rows on the screen.
func (m *model) table(items []*item) screen.Table {
	widths, hasClasses := m.widths()
	var columns []screen.Column
	if m.everywhere {
		columns = append(columns, screen.Column{Header: headerNamespace, Least: 9, Middle: true})
	}
	columns = append(columns, screen.Column{Header: headerName, Least: 16, Middle: true})
	if hasClasses {
		columns = append(columns, screen.Column{Header: headerClass, Least: 5, Spare: 3})
	}
	columns = append(columns, screen.Column{Header: headerState}, screen.Column{Header: "SINCE", Spare: 1},
		screen.Column{Header: "OBJECTS", Spare: 4}, screen.Column{Header: "MESSAGE", Least: 10, Spare: 2})
	columns[0].Header = "  " + columns[0].Header
	widths[columns[0].Header] = widths[strings.TrimSpace(columns[0].Header)] + len(marker)
	table := screen.Table{Columns: columns}
	for _, is := range items {
		var row []screen.Cell
		if m.everywhere {
			row = append(row, screen.Cell{Text: is.Namespace})
		}
		row = append(row, screen.Cell{Text: is.Name})
		if hasClasses {
			row = append(row, screen.Cell{Text: is.class})
		}
		before := "  "
		if is.FullName() == m.chosen {
			before = marker
		}
		row[0].Text = before + row[0].Text
		table.Rows = append(table.Rows, append(row, screen.Cell{Text: string(is.is.Word), Style: is.is.Word.Style()},
			screen.Cell{Text: console.Age(is.is.Since, m.now)}, screen.Cell{Text: strconv.Itoa(is.objects)}, screen.Cell{Text: is.message}))
	}
	return table.Steady(widths)
}

// widths returns the column widths for all items, and whether any item has a class other than the default class.
func (m *model) widths() (widths map[string]int, hasClasses bool) {
	namespace, name, class, word := 0, 0, 0, 0
	for _, is := range m.items {
		namespace, name, class = max(namespace, len(is.Namespace)), max(name, len(is.Name)), max(class, len(is.class))
		word = max(word, len(is.is.Word))
		hasClasses = hasClasses || is.class != resourcesv1alpha1.DefaultClass
	}
	return map[string]int{headerNamespace: namespace, headerName: name, headerClass: class, headerState: word}, hasClasses
}

func (m *model) viewPage() []line {
	p := m.page
	lines := []line{m.pageTitle()}
	laid := m.layOut()
	if p.details == nil {
		return lines
	}
	for _, spans := range laid[min(p.offset, len(laid)):] {
		lines = append(lines, line{spans: spans})
	}
	if len(lines) > m.pageRows()+1 {
		lines = lines[:m.pageRows()+1]
	}
	return lines
}

func (m *model) pageTitle() line {
	p := m.page
	switch {
	case m.loaded && m.items[p.name] == nil:
		return painted(screen.Bad, fmt.Sprintf("%s was deleted within the last %s", p.name, console.Age(p.readAt, m.now)))
	case m.lost != nil:
		return m.title()
	case p.err != nil:
		return painted(screen.Bad, fmt.Sprintf("%s cannot be read: %v", p.name, p.err))
	case p.details == nil:
		return painted(screen.Strong, fmt.Sprintf("%s: reading …", p.name))
	}
	return painted(screen.Strong, fmt.Sprintf("%s, read %s ago", p.name, console.Age(p.readAt, m.now)))
}

// bottom returns the last line: a question, a message, or else some of the keys.
func (m *model) bottom() line {
	switch {
	case m.asked != nil:
		return painted(screen.Strong, fmt.Sprintf("Reconcile %s? y/n", m.asked))
	case m.typing:
		return line{spans: []screen.Span{{Text: "/" + screen.Harmless(m.filter.words) + "_", Style: screen.Strong}}}
	case m.status != "":
		return plain("%s", m.status)
	case m.help:
		return painted(screen.Faint, "any key: back")
	case m.page != nil:
		last := min(m.page.offset+m.pageRows(), len(m.page.lines))
		return painted(screen.Faint, fmt.Sprintf("%d of %d lines · Esc back · r reconcile · ? help", last, len(m.page.lines)))
	}
	return painted(screen.Faint, fmt.Sprintf("%d of %d · Enter open · / filter · u unhealthy · ? help",
		min(m.cursor+1, len(m.shown)), len(m.shown)))
}
