package screen

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// gap is the space between columns.
const gap = 2

// Column is a column of a table.
type Column struct {
	Header string
	// Least is the minimum width of the column on a narrow screen. It is 0 if the column must not be cut.
	Least int
	// Middle cuts longer texts in the middle, not at the end.
	Middle bool
	// Spare is greater than 0 if the column may be omitted on a narrow screen. The column with the greatest number is
	// omitted first.
	Spare int
	// wide is the minimum width of the column if the screen has enough space.
	wide int
}

// Cell is a text in a table.
type Cell struct {
	Text  string
	Style Style
}

// Text returns cells without a style.
func Text(texts ...string) []Cell {
	cells := make([]Cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, Cell{Text: text})
	}
	return cells
}

// Table is a table with a header.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	// Bare omits the header.
	Bare bool
}

// Print prints a table. If it is too wide for the screen, Print cuts columns, and then omits columns, as far as they
// allow it.
func (s Screen) Print(table Table) error {
	for _, row := range table.Rows {
		for i := range row {
			row[i].Text = Harmless(strings.ReplaceAll(row[i].Text, "\n", " "))
		}
	}
	widths := table.fit(s.Width)
	if !table.Bare {
		header := make([]Cell, 0, len(table.Columns))
		for _, column := range table.Columns {
			header = append(header, Cell{column.Header, Strong})
		}
		if err := s.printRow(table.Columns, widths, header); err != nil {
			return err
		}
	}
	for _, row := range table.Rows {
		if err := s.printRow(table.Columns, widths, row); err != nil {
			return err
		}
	}
	return nil
}

func (s Screen) printRow(columns []Column, widths []int, row []Cell) error {
	last := -1
	for i, cell := range row {
		if widths[i] > 0 && cell.Text != "" {
			last = i
		}
	}
	var line strings.Builder
	for i := 0; i <= last; i++ {
		if widths[i] == 0 {
			continue
		}
		text := row[i].Text
		if columns[i].Middle {
			text = CutMiddle(text, widths[i])
		} else {
			text = CutEnd(text, widths[i])
		}
		line.WriteString(s.Paint(row[i].Style, text))
		if i < last {
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+gap))
		}
	}
	line.WriteByte('\n')
	_, err := fmt.Fprint(s.Writer, line.String())
	return err
}

// Width returns the width of the table if nothing is cut.
func (t Table) Width() int { return total(t.fit(0)) }

// fit returns the width of each column. It is 0 for omitted columns.
func (t Table) fit(width int) []int {
	widths := make([]int, len(t.Columns))
	for i, column := range t.Columns {
		if widths[i] = column.wide; !t.Bare {
			widths[i] = max(widths[i], utf8.RuneCountInString(column.Header))
		}
		for _, row := range t.Rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
			}
		}
	}
	if width == 0 {
		return widths
	}
	narrow(t.Columns, widths, width)
	for total(widths) > width {
		spare := sparest(t.Columns, widths)
		if spare < 0 {
			break
		}
		widths[spare] = 0
	}
	t.widen(widths, width)
	return widths
}

// narrow cuts the widest columns that may be cut, until the table fits or no column can be cut any further.
func narrow(columns []Column, widths []int, width int) {
	for total(widths) > width {
		widest := -1
		for i, column := range columns {
			if column.Least > 0 && widths[i] > column.Least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// widen distributes the space of omitted columns to columns that were cut.
func (t Table) widen(widths []int, width int) {
	full := t.fit(0)
	for total(widths) < width {
		grown := false
		for i := range widths {
			if widths[i] > 0 && widths[i] < full[i] && total(widths) < width {
				widths[i]++
				grown = true
			}
		}
		if !grown {
			return
		}
	}
}

func sparest(columns []Column, widths []int) int {
	spare := -1
	for i, column := range columns {
		if column.Spare > 0 && widths[i] > 0 && (spare < 0 || column.Spare > columns[spare].Spare) {
			spare = i
		}
	}
	return spare
}

func total(widths []int) int {
	shown := slices.DeleteFunc(slices.Clone(widths), func(width int) bool { return width == 0 })
	sum := gap * max(len(shown)-1, 0)
	for _, width := range shown {
		sum += width
	}
	return sum
}

// Steady returns the table with minimum widths of columns, by their headers, so that rows that are printed one by one
// are aligned.
func (t Table) Steady(widths map[string]int) Table {
	columns := slices.Clone(t.Columns)
	for i := range columns {
		columns[i].wide = widths[columns[i].Header]
	}
	t.Columns = columns
	return t
}
