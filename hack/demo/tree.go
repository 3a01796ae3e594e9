package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// node is an entry of a tree: a name, a short state in a column of its own, and what hangs below it.
type node struct {
	name     string
	state    string
	children []node
}

// printTree draws trees with box characters, with an empty line between them and their states aligned in one column.
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

// appendTree appends one row for every node of a tree. The prefix goes before the node's name, the indent before what
// is below it.
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

// printTable prints rows in aligned columns. Lines do not end in spaces.
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

// shorten makes a text one line, up to a maximum of characters.
func shorten(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if characters := []rune(text); len(characters) > limit {
		return string(characters[:limit-1]) + "…"
	}
	return text
}
