// Package events provides the command that shows the Events about a ManagedResource and its objects.
package events

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
)

type options struct {
	output   *console.Output
	warnings bool
	since    time.Duration
}

// NewCommand returns the command events.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "events NAME",
		Short: "Show the Events about a ManagedResource, its objects and their owned objects",
		Long: `Shows the Events about a ManagedResource, about its objects, and about the objects that these own, such as Pods, in one list
with the latest at the end. It includes Events about deleted Pods.`,
		Example: `  kubectl mr events webshop-app -n garden

  # show only warnings of the last ten minutes
  kubectl mr events webshop-app -n garden --warnings --since 10m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames(1),
		RunE: func(command *cobra.Command, names []string) error {
			return o.run(command.Context(), c, names[0])
		},
	}
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML, console.FormatWide)
	command.Flags().BoolVar(&o.warnings, "warnings", false, "Show only warnings")
	command.Flags().DurationVar(&o.since, "since", 0, "Show only Events newer than this duration, such as 10m (default: all)")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, name string) error {
	mr, err := c.ChooseOne(ctx, name)
	if err != nil {
		return err
	}
	found, err := About(ctx, c, mr)
	if err != nil {
		return err
	}
	now := c.Clock.Now()
	shown := make([]snapshot.Event, 0, len(found))
	for _, event := range found {
		old := o.since > 0 && now.Sub(event.Last) > o.since
		if !old && (!o.warnings || event.Type == corev1.EventTypeWarning) {
			shown = append(shown, event)
		}
	}
	if !o.output.IsText() {
		return c.PrintValue(o.output.Format, shown)
	}
	if len(shown) == 0 {
		c.Warn("No Events found. The API server keeps them for one hour by default.")
		return nil
	}
	return c.Screen.Print(o.table(shown, now))
}

// About returns the Events about a ManagedResource and all objects below it, the latest last. It warns on standard
// error about
// Events that the user may not read.
func About(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) ([]snapshot.Event, error) {
	found, err := read(ctx, c, mr)
	if err != nil {
		return nil, err
	}
	described := make([]snapshot.Event, 0, len(found))
	for _, event := range found {
		described = append(described, snapshot.Describe(event))
	}
	slices.SortStableFunc(described, func(a, b snapshot.Event) int {
		return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
	})
	return described, nil
}

func read(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) ([]corev1.Event, error) {
	objects, err := snapshot.Inventories(ctx, c, []resourcesv1alpha1.ManagedResource{*mr}, true, true)
	if err != nil {
		return nil, err
	}
	source, err := c.Source()
	if err != nil {
		return nil, err
	}
	target, err := c.Target()
	if err != nil && !errors.Is(err, console.ErrNoTarget) {
		return nil, err
	}
	own := &corev1.EventList{}
	selector := fields.SelectorFromSet(fields.Set{"involvedObject.uid": string(mr.UID)})
	err = source.List(ctx, own, client.InNamespace(mr.Namespace), client.MatchingFieldsSelector{Selector: selector})
	if apierrors.IsForbidden(err) {
		c.Warn("Not shown, because you may not read them: Events in namespace %s.", mr.Namespace)
	} else if err != nil {
		return nil, err
	}
	all := own.Items
	if target == nil {
		return all, nil
	}
	for _, namespace := range snapshot.EventNamespaces(objects[0]) {
		events, err := snapshot.ListEvents(ctx, target.Events, namespace, nil)
		switch {
		case apierrors.IsForbidden(err):
			c.Warn("Not shown, because you may not read them: Events in namespace %s.", namespace)
		case err != nil:
			return nil, err
		}
		all = append(all, snapshot.EventsAbout(events, objects[0])...)
	}
	return all, nil
}

func (o *options) table(shown []snapshot.Event, now time.Time) screen.Table {
	table := screen.Table{Columns: []screen.Column{
		{Header: "LAST"}, {Header: "TYPE", Spare: 1}, {Header: "REASON", Least: 10}, {Header: "OBJECT", Least: 14, Middle: true},
		{Header: "MESSAGE", Least: 20},
	}}
	if o.output.Format == console.FormatWide {
		table.Columns[4].Least = 0
	}
	for _, event := range shown {
		kind := screen.Cell{Text: event.Type}
		if event.Type == corev1.EventTypeWarning {
			kind.Style = screen.Busy
		}
		table.Rows = append(table.Rows, []screen.Cell{
			{Text: console.Age(event.Last, now)}, kind, {Text: event.Reason}, {Text: event.Object}, {Text: screen.OneLine(event.Message)},
		})
	}
	return table
}
