// Package why provides the command that explains why ManagedResources are not ready: it names the objects, their
// problems and their
// Events.
package why

import (
	"context"

	"github.com/spf13/cobra"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/explain"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

type options struct {
	console.Choice
	output *console.Output
}

// NewCommand returns the command why.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "why [NAME... | shoot/NAMESPACE/NAME | seed/NAME | gardens/NAME]",
		Short: "Explain why ManagedResources are not ready, and for how long",
		Long: `Explains why ManagedResources are not ready: which objects are missing, unhealthy or stuck and for how long, their conditions, the
objects that they own, their latest Events, which field managers changed them, and the conditions of the ManagedResource. If it waits
for another ManagedResource to be applied or deleted, that one is explained, too.

It also shows the dependencies of the ManagedResource and their required states, the ManagedResources that must be deleted before it,
fields that are sent only when their object changes, and when finalizers are removed.

Without a name, it explains all ManagedResources that are neither ready nor suspended.

For a Shoot or a Seed of a garden, it shows the last operation, errors and conditions, and explains its ManagedResources that are not
ready. Those that the errors name come first. The garden is the cluster of --garden-kubeconfig or --garden-context. The default is the
cluster with the ManagedResources.`,
		Example: `  # explain what is wrong in this namespace
  kubectl mr why -n garden

  # explain what is wrong in all namespaces
  kubectl mr why -A

  # explain the state of one ManagedResource, even if it is suspended, being deleted, or waiting for others
  kubectl mr why webshop-app -n garden

  # explain why a Shoot is not ready
  kubectl mr why shoot/garden-dev/one --garden-kubeconfig garden.kubeconfig`,
		ValidArgsFunction: fleet.Complete(c, c.CompleteNames(0)),
		RunE: func(command *cobra.Command, names []string) error {
			return fleet.Dispatch(command.Context(), c, names, o.Choice, o.runOf, o.run)
		},
	}
	o.AddFlags(command.Flags())
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML)
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	items, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return err
	}
	var chosen []resourcesv1alpha1.ManagedResource
	for i := range items {
		if len(names) > 0 || !state.Of(&items[i]).Word.IsWell() {
			chosen = append(chosen, items[i])
		}
	}
	if len(chosen) == 0 && o.output.Format == "" {
		if len(items) == 0 {
			c.Warn("No ManagedResources found.")
			return nil
		}
		c.Warn("All ManagedResources are ready or suspended (%d).", len(items))
		return nil
	}
	explanation, err := explain.All(ctx, c, chosen, false)
	if err != nil {
		return err
	}
	if o.output.Format != "" {
		return c.PrintValue(o.output.Format, explanation)
	}
	return explanation.Print(c.Screen, c.Clock.Now())
}
