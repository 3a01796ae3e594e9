// Package top provides the command that shows ManagedResources live and full screen. Those that need attention come
// first.
package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

// Options select the ManagedResources.
type Options struct {
	console.Choice
	// Unhealthy omits ManagedResources that are ready or suspended.
	Unhealthy bool
	// Of is the Shoot or Seed whose ManagedResources are shown. It is nil for those of the choice.
	Of *fleet.Name
}

// NewCommand returns the command top.
func NewCommand(c *console.Console) *cobra.Command {
	o := Options{}
	command := &cobra.Command{
		Use:   "top [shoot/NAMESPACE/NAME | seed/NAME | gardens/NAME]",
		Short: "Watch ManagedResources live, full screen",
		Long: `Shows the states of ManagedResources live and full screen. Those that need attention come first. Open one to see why it is not
ready, and its objects down to Pods. The help of get and tree explains the states.

For a Shoot or a Seed of a garden, it shows its ManagedResources, and above them the progress of its operation.

` + keys,
		Example: `  # all namespaces
  kubectl mr top -A

  # only those that need attention
  kubectl mr top -A --unhealthy

  # a Shoot during its creation
  kubectl mr top shoot/garden-dev/one --garden-kubeconfig garden.kubeconfig`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: fleet.Complete(c, cobra.NoFileCompletions),
		RunE: func(command *cobra.Command, names []string) error {
			var err error
			if o.Of, err = fleet.Of(names, o.Choice); err != nil {
				return err
			}
			if o.Of == nil && len(names) > 0 {
				return fmt.Errorf("top shows all ManagedResources of a namespace, or those of shoot/NAMESPACE/NAME, seed/NAME or gardens/NAME. "+
					"To follow %s: kubectl mr get %s -w", names[0], names[0])
			}
			terminal, err := openTerminal(c)
			if err != nil {
				return err
			}
			return Run(command.Context(), c, o, terminal)
		},
	}
	o.AddFlags(command.Flags())
	command.Flags().BoolVar(&o.Unhealthy, "unhealthy", false, "Show only those that are neither ready nor suspended (key u)")
	return command
}

// Run shows ManagedResources on a terminal until the user quits or the context is canceled. It initializes the
// terminal only if
// ManagedResources can be read, so that errors are printed as by other commands. It always restores the terminal.
func Run(ctx context.Context, c *console.Console, o Options, terminal tcell.Screen) error {
	source, err := c.Source()
	if err != nil {
		return err
	}
	shown, err := o.find(ctx, c)
	if err != nil {
		return err
	}
	for _, options := range shown.lists {
		if err := source.List(ctx, &resourcesv1alpha1.ManagedResourceList{}, append(slices.Clone(options), client.Limit(1))...); err != nil {
			return err
		}
	}
	if err := start(terminal); err != nil {
		return err
	}
	if shown.owner != nil {
		c = shown.owner.Console(c)
	}
	box := newMailbox()
	joined := newParts(box, len(shown.lists))
	var watchers []func(context.Context)
	for i, options := range shown.lists {
		watcher := watch.Watcher[*item]{
			Name: "top", Source: source, Choice: o.Choice, Options: options, Summarize: newItem, Sink: joined.part(i),
		}
		watchers = append(watchers, watcher.Run)
	}
	follow := func(ctx context.Context) { runAll(ctx, watchers) }
	p := newProgram(c, terminal, follow, box)
	p.model.scope, p.model.host, p.model.everywhere = shown.scope, console.HostOf(source.Host), shown.everywhere
	p.model.filter.unwell, p.model.owner = o.Unhealthy, shown.owner
	return p.run(ctx)
}

// runAll runs functions concurrently, and returns after all have ended. If one of them panics, runAll cancels the
// others and repeats
// the panic in the goroutine of the caller, which restores the terminal.
func runAll(ctx context.Context, all []func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	panics := make(chan any, len(all))
	for _, run := range all {
		running.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					panics <- cause
					cancel()
				}
			}()
			run(ctx)
		})
	}
	running.Wait()
	select {
	case cause := <-panics:
		panic(cause)
	default:
	}
}

// selection contains the selected ManagedResources.
type selection struct {
	// scope describes them in messages. lists are the options of the list requests that return them.
	scope string
	lists [][]client.ListOption
	// everywhere is set if they are in several namespaces.
	everywhere bool
	// owner is their Shoot or Seed. It is nil for none.
	owner *fleet.Owner
}

// find returns the selection of the options.
func (o Options) find(ctx context.Context, c *console.Console) (selection, error) {
	if o.Of != nil {
		owner, err := fleet.Read(ctx, c, *o.Of)
		if err != nil {
			return selection{}, err
		}
		lists := owner.Scopes()
		if len(lists) == 0 {
			return selection{}, errors.New(owner.WhyNone(c))
		}
		return selection{scope: "of " + owner.String(), lists: lists, everywhere: true, owner: owner}, nil
	}
	namespace, err := c.Namespace()
	if err != nil {
		return selection{}, err
	}
	options, err := o.Options(namespace)
	return selection{scope: scope(o.Choice, namespace), lists: [][]client.ListOption{options}, everywhere: o.AllNamespaces}, err
}

// scope describes the selected ManagedResources.
func scope(choice console.Choice, namespace string) string {
	text := "in namespace " + namespace
	if choice.AllNamespaces {
		text = "in all namespaces"
	}
	if choice.Class != "" {
		text += fmt.Sprintf(", class %s", choice.Class)
	}
	if choice.Selector != "" {
		text += fmt.Sprintf(", labels %s", choice.Selector)
	}
	return text
}
