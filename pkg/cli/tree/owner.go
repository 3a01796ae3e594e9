package tree

import (
	"context"
	"fmt"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// ownerReport is the JSON and YAML output for a Shoot or Seed.
type ownerReport struct {
	fleet.Report
	ManagedResources []report `json:"managedResources"`
}

// runOf prints the ManagedResources of a Shoot or Seed in the steps in which they are deployed.
func (o *options) runOf(ctx context.Context, c *console.Console, name fleet.Name) error {
	owner, err := fleet.Read(ctx, c, name)
	if err != nil {
		return err
	}
	items, err := owner.ManagedResources(ctx, c)
	if err != nil {
		return err
	}
	objects, err := snapshot.Inventories(ctx, owner.Console(c), items, true, o.all)
	if err != nil {
		return err
	}
	switch o.output.Format {
	case console.FormatJSON, console.FormatYAML:
		return c.PrintValue(o.output.Format, ownerReport{owner.Report(), o.report(items, objects)})
	case console.FormatName:
		return o.printNames(c, objects)
	}
	if len(items) == 0 {
		c.Warn("%s", owner.WhyNone(c))
	}
	return c.Screen.PrintTrees(columns(o.output.Format == console.FormatWide), []screen.Node{o.ownerTree(owner, items, objects, c)})
}

// ownerTree returns the tree of an owner. The items are in the order of fleet.Steps, and the objects in that of the
// items.
func (o *options) ownerTree(
	owner *fleet.Owner, items []resourcesv1alpha1.ManagedResource, objects [][]*snapshot.Object, c *console.Console,
) screen.Node {
	now, known := c.Clock.Now(), map[string]state.Word{}
	for i := range items {
		known[state.NameOf(&items[i]).String()] = state.Of(&items[i]).Word
	}
	word, style := owner.Word()
	detail := owner.Description()
	if detail == "" {
		detail = owner.Operation(now)
	}
	root := screen.Node{Name: screen.Cell{Text: owner.String(), Style: screen.Strong}, Cells: cells(word, style, owner.Created, detail, now)}
	at := 0
	for n, step := range fleet.Steps(items) {
		node := screen.Node{Name: screen.Cell{Text: fmt.Sprintf("step %d", n+1), Style: screen.Faint}, Cells: screen.Text("", "", "")}
		for i := range step {
			tree := o.treeOf(&step[i], objects[at], known, now)
			if !o.unhealthy || len(tree.Children) > 0 || !state.Of(&step[i]).Word.IsWell() {
				node.Children = append(node.Children, tree)
			}
			at++
		}
		if len(node.Children) > 0 {
			root.Children = append(root.Children, node)
		}
	}
	return root
}
