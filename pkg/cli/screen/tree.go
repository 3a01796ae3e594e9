package screen

// Node is an object in a tree, with its name, additional columns and children.
type Node struct {
	Name     Cell
	Cells    []Cell
	Children []Node
}

// PrintTrees prints trees as a table whose first column contains the names. It prints an empty line between trees.
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

// appendTree appends one row for every object of a tree. It puts the prefix before the name, and the indent before
// its children.
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
