// Package tree provides the command that shows the objects of ManagedResources, down to Pods.
package tree

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/relations"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

type options struct {
	console.Choice
	output    *console.Output
	all       bool
	unhealthy bool
}

// NewCommand returns the command tree.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "tree [NAME... | shoot/NAMESPACE/NAME | seed/NAME | gardens/NAME]",
		Short: "Show the objects of ManagedResources, down to Pods",
		Long: `Shows the objects of ManagedResources and the objects that they own (by owner references), with their health and age.
Health is determined by the built-in health checks of the resource-manager and by those of the ManagedResource.

  Healthy      the health check of its kind succeeds
  Present      it exists, and its kind has no health check
  Progressing  it is being rolled out
  Unhealthy    the health check fails
  Missing      it does not exist
  Deleting     it is being deleted
  Unchecked    health checks are disabled for it, or failed with an error
  Unseen       you may not read it

The dependencies of a ManagedResource, and the ManagedResources that must be deleted before it, are listed before its objects. With
-o wide, so are the fields of objects that are sent only when their object changes, and the time after which finalizers are removed.

For a Shoot or a Seed of a garden, it shows its ManagedResources in the steps in which they are deployed. Objects in the cluster of a
Shoot are read if --target-kubeconfig or --target-context specifies it.`,
		Example: `  kubectl mr tree webshop-app -n garden

  # show only unhealthy objects of all ManagedResources
  kubectl mr tree -A --unhealthy

  # also show fields that are sent only on changes, and when finalizers are removed
  kubectl mr tree webshop-app -n garden -o wide

  # show objects that are in another cluster
  kubectl mr tree -n shoot--dev --target-kubeconfig shoot.kubeconfig

  # show all objects of a Shoot, in its seed and in its own cluster
  kubectl mr tree shoot/garden-dev/one --garden-context garden --target-kubeconfig shoot.kubeconfig`,
		ValidArgsFunction: fleet.Complete(c, c.CompleteNames(0)),
		RunE: func(command *cobra.Command, names []string) error {
			return fleet.Dispatch(command.Context(), c, names, o.Choice, o.runOf, o.run)
		},
	}
	o.AddFlags(command.Flags())
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML, console.FormatWide, console.FormatName)
	command.Flags().BoolVar(&o.all, "all", false, "Also show ReplicaSets of previous revisions")
	command.Flags().BoolVar(&o.unhealthy, "unhealthy", false, "Show only unhealthy objects and their owners")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	items, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		c.Warn("No ManagedResources found.")
		return nil
	}
	objects, err := snapshot.Inventories(ctx, c, items, true, o.all)
	if err != nil {
		return err
	}
	switch o.output.Format {
	case console.FormatJSON, console.FormatYAML:
		return c.PrintValue(o.output.Format, o.report(items, objects))
	case console.FormatName:
		return o.printNames(c, objects)
	}
	now := c.Clock.Now()
	known := map[string]state.Word{}
	for i := range items {
		known[state.NameOf(&items[i]).String()] = state.Of(&items[i]).Word
	}
	var trees []screen.Node
	for i := range items {
		tree := o.treeOf(&items[i], objects[i], known, now)
		if !o.unhealthy || len(tree.Children) > 0 || !state.Of(&items[i]).Word.IsWell() {
			trees = append(trees, tree)
		}
	}
	if len(trees) == 0 {
		c.Warn("No unhealthy objects found.")
		return nil
	}
	return c.Screen.PrintTrees(columns(o.output.Format == console.FormatWide), trees)
}

// Print prints the objects of a ManagedResource that snapshot.Inventories returned.
func Print(to screen.Screen, mr *resourcesv1alpha1.ManagedResource, objects []*snapshot.Object, now time.Time) error {
	return to.PrintTrees(columns(false), []screen.Node{(&options{output: &console.Output{}}).treeOf(mr, objects, nil, now)})
}

func columns(wide bool) []screen.Column {
	detail := screen.Column{Header: "DETAIL", Least: 14, Spare: 2}
	if wide {
		detail.Least, detail.Spare = 0, 0
	}
	return []screen.Column{{Header: "OBJECT", Least: 26, Middle: true}, {Header: "HEALTH"}, {Header: "AGE", Spare: 1}, detail}
}

// treeOf returns the tree of a ManagedResource. known are the states of other ManagedResources, by name.
func (o *options) treeOf(
	mr *resourcesv1alpha1.ManagedResource, objects []*snapshot.Object, known map[string]state.Word, now time.Time,
) screen.Node {
	is := state.Of(mr)
	first, _, _ := strings.Cut(is.Message, "\n")
	if is.Word == state.Ready {
		first = screen.Count(len(objects), "object")
	}
	return screen.Node{
		Name:     screen.Cell{Text: fmt.Sprintf("ManagedResource %s/%s", mr.Namespace, mr.Name), Style: screen.Strong},
		Cells:    cells(string(is.Word), is.Word.Style(), mr.CreationTimestamp.Time, first, now),
		Children: append(o.relationsOf(mr, known), o.nodesOf(objects, "", now)...),
	}
}

// relationsOf returns nodes for the dependencies of a ManagedResource, and in the wide output also for its other
// relations.
func (o *options) relationsOf(mr *resourcesv1alpha1.ManagedResource, known map[string]state.Word) []screen.Node {
	if o.unhealthy {
		return nil
	}
	var nodes []screen.Node
	add := func(name string, is state.Word, detail string) {
		nodes = append(nodes, screen.Node{
			Name:  screen.Cell{Text: name, Style: screen.Faint},
			Cells: []screen.Cell{{Text: string(is), Style: is.Style()}, {}, {Text: detail}},
		})
	}
	its := relations.Of(mr)
	for _, dependency := range its.DependsOn {
		add("depends on "+dependency.Name, known[dependency.Name], dependency.Required())
	}
	for _, name := range its.DeletedAfter {
		add("is deleted after "+name, known[name], "")
	}
	if its.DeletedAfter != nil && len(its.DeletedAfter) == 0 {
		add("is deleted at once", "", "does not wait for its dependents")
	}
	if o.output.Format != console.FormatWide {
		return nodes
	}
	for _, rule := range its.OnlyOnChange {
		add("sends only on changes", "", rule)
	}
	if its.FinalizeDeletionAfter != "" {
		add("removes finalizers", "", its.FinalizeDeletionAfter+" after its deletion begins")
	}
	return nodes
}

// nodesOf returns nodes for objects. The namespace is that of their parent.
func (o *options) nodesOf(objects []*snapshot.Object, namespace string, now time.Time) []screen.Node {
	var nodes []screen.Node
	for _, object := range objects {
		is := object.Health()
		children := o.nodesOf(object.Children, object.Namespace, now)
		if o.unhealthy && is.IsWell() && len(children) == 0 {
			continue
		}
		text := object.Detail
		if why := object.Why(); why != "" && !strings.Contains(text, ":") {
			text = why
		}
		nodes = append(nodes, screen.Node{
			Name:     screen.Cell{Text: object.Title(namespace)},
			Cells:    cells(string(is), is.Style(), object.Created(), text, now),
			Children: children,
		})
	}
	return nodes
}

func cells(word string, style screen.Style, created time.Time, detail string, now time.Time) []screen.Cell {
	return []screen.Cell{{Text: word, Style: style}, {Text: console.Age(created, now)}, {Text: screen.OneLine(detail)}}
}

// printNames prints all objects with their namespaces, as arguments for kubectl.
func (o *options) printNames(c *console.Console, objects [][]*snapshot.Object) error {
	for _, roots := range objects {
		for _, root := range roots {
			root.Walk(func(object *snapshot.Object) {
				if o.unhealthy && object.Health().IsWell() {
					return
				}
				line := fmt.Sprintf("%s/%s", strings.ToLower(object.GroupKind().String()), object.Name)
				if object.Namespace != "" {
					line += " -n " + object.Namespace
				}
				fmt.Fprintln(c.Screen, line)
			})
		}
	}
	return nil
}

// report is the JSON and YAML output for a ManagedResource.
type report struct {
	Name      string        `json:"name"`
	Namespace string        `json:"namespace"`
	State     state.Word    `json:"state"`
	Objects   []objectState `json:"objects"`
	relations.Relations
}

type objectState struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Namespace  string          `json:"namespace,omitempty"`
	Name       string          `json:"name"`
	Health     snapshot.Health `json:"health"`
	Why        string          `json:"why,omitempty"`
	Detail     string          `json:"detail,omitempty"`
	Created    *time.Time      `json:"created,omitempty"`
	Owns       []objectState   `json:"owns,omitempty"`
}

func (o *options) report(items []resourcesv1alpha1.ManagedResource, objects [][]*snapshot.Object) []report {
	reports := make([]report, 0, len(items))
	for i := range items {
		reports = append(reports, report{
			Name: items[i].Name, Namespace: items[i].Namespace, State: state.Of(&items[i]).Word, Objects: o.statesOf(objects[i]),
			Relations: relations.Of(&items[i]),
		})
	}
	return reports
}

func (o *options) statesOf(objects []*snapshot.Object) []objectState {
	states := []objectState{}
	for _, object := range objects {
		owns := o.statesOf(object.Children)
		if o.unhealthy && object.Health().IsWell() && len(owns) == 0 {
			continue
		}
		described := objectState{
			APIVersion: object.GroupVersion().String(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
			Health: object.Health(), Why: object.Why(), Detail: object.Detail, Owns: owns,
		}
		if created := object.Created(); !created.IsZero() {
			described.Created = &created
		}
		states = append(states, described)
	}
	return states
}
