// Package top is the command that shows ManagedResources live, full screen, those that need attention first.
package top

import (
	"context"
	"fmt"
	"net/url"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

// Options specify what is shown initially.
type Options struct {
	console.Choice
	// Unhealthy omits those that are ready or suspended.
	Unhealthy bool
}

// NewCommand returns the command.
func NewCommand(c *console.Console) *cobra.Command {
	o := Options{}
	command := &cobra.Command{
		Use:   "top",
		Short: "Watch ManagedResources live, full screen",
		Long: `Shows the states of ManagedResources live and full screen, those that need attention first. Open one to see why it is not ready,
and its objects down to Pods. The help of get and tree explains the states.

` + keys,
		Example: `  # all namespaces
  kubectl mr top -A

  # only what needs attention
  kubectl mr top -A --unhealthy`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
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

// Run shows ManagedResources on a terminal until the user quits or the context ends. The terminal is initialised only if
// ManagedResources can be read, so that errors are printed as by other commands, and is always restored.
func Run(ctx context.Context, c *console.Console, o Options, terminal tcell.Screen) error {
	source, err := c.Source()
	if err != nil {
		return err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return err
	}
	options, err := o.Options(namespace)
	if err != nil {
		return err
	}
	if err := source.List(ctx, &resourcesv1alpha1.ManagedResourceList{}, append(options, client.Limit(1))...); err != nil {
		return err
	}
	if err := start(terminal); err != nil {
		return err
	}
	box := newMailbox()
	follow := watch.Watcher[*item]{Name: "top", Source: source, Choice: o.Choice, Options: options, Summarize: newItem, Sink: box}
	p := newProgram(c, terminal, follow.Run, box)
	p.model.scope, p.model.host, p.model.everywhere = scope(o.Choice, namespace), hostOf(source), o.AllNamespaces
	p.model.filter.unwell = o.Unhealthy
	return p.run(ctx)
}

// scope describes which ManagedResources are shown.
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

func hostOf(source *console.Source) string {
	if parsed, err := url.Parse(source.Host); err == nil && parsed.Host != "" {
		return parsed.Host
	}
	return source.Host
}
