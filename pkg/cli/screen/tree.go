package screen

// Node is an object in a tree: its name, what is said of it in columns of its own, and what is below it.
type Node struct {
	Name     Cell
	Cells    []Cell
	Children []Node
}

// PrintTrees writes trees, with what is said of their objects aligned in columns. The first column is that of the names. Trees
// after the first one follow an empty line.
func (s Screen) PrintTrees(columns []Column, trees []Node) error {
	table := Table{Columns: columns}
	for i, tree := range trees {
		if i > 0 {
			table.Rows = append(table.Rows, Text(make([]string, len(columns))...))
		}
		table.Rows = appendTree(table.Rows, "", "", tree)
	}
	return s.Print(table)
}

// appendTree appends one row for every object of a tree. The prefix goes before its name, the indent before what is below it.
func appendTree(rows [][]Cell, prefix, indent string, tree Node) [][]Cell {
	name := tree.Name
	name.Text = prefix + name.Text
	rows = append(rows, append([]Cell{name}, tree.Cells...))
	for i, child := range tree.Children {
		branch, below := "├─ ", "│  "
		if i == len(tree.Children)-1 {
			branch, below = "└─ ", "   "
		}
		rows = appendTree(rows, indent+branch, indent+below, child)
	}
	return rows
}
