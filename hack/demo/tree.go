package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// node is a node of a tree with a name, a short state in its own column, and children.
type node struct {
	name     string
	state    string
	children []node
}

// printTree draws trees with box characters, separated by empty lines, with their states aligned in one column.
func printTree(out io.Writer, roots []node) error {
	var rows [][]string
	for i, root := range roots {
		if i > 0 {
			rows = append(rows, []string{"", ""})
		}
		rows = appendTree(rows, "", "", root)
	}
	return printTable(out, nil, rows)
}

// appendTree appends one row for each node of a tree. The prefix precedes the name of the root node, the indent precedes
// its descendants.
func appendTree(rows [][]string, prefix, indent string, tree node) [][]string {
	rows = append(rows, []string{prefix + tree.name, tree.state})
	for i, child := range tree.children {
		branch, below := "├─ ", "│  "
		if i == len(tree.children)-1 {
			branch, below = "└─ ", "   "
		}
		rows = appendTree(rows, indent+branch, indent+below, child)
	}
	return rows
}

// printTable prints rows in aligned columns without trailing spaces.
func printTable(out io.Writer, header []string, rows [][]string) error {
	var aligned strings.Builder
	writer := tabwriter.NewWriter(&aligned, 0, 0, 3, ' ', 0)
	if header != nil {
		rows = append([][]string{header}, rows...)
	}
	for _, row := range rows {
		fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	if err := writer.Flush(); err != nil {
		return fmt.Errorf("printing a table: %w", err)
	}
	for line := range strings.Lines(aligned.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight("  "+line, " \n")); err != nil {
			return fmt.Errorf("printing a table: %w", err)
		}
	}
	return nil
}

// shorten converts a text to one line of at most limit characters.
func shorten(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if characters := []rune(text); len(characters) > limit {
		return string(characters[:limit-1]) + "…"
	}
	return text
}
