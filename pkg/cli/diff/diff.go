// Package diff is the command that shows what applying a ManagedResource would change, by the resource-manager's own plan and
// engine.
package diff

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
)

type options struct {
	Subjects
	output *console.Output
	brief  bool
}

// NewCommand returns the command.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "diff [NAME...] [-f PATH... | -k FOLDER | --chart PATH | --set SECRET,...]",
		Short: "Show what applying ManagedResources would change",
		Long: `Shows what the resource-manager would change if it applied ManagedResources now: what was changed by hand in ones that are
suspended, what is not applied yet, or, with -f, what other manifests would change. It decides as the resource-manager does, and
asks the API server what it would make of each object (server-side dry run), with defaults and webhooks. Nothing is written. The
values of Secrets are hidden.

  + is created   ~ is changed   - is deleted   ± is replaced   ! fails   … waits

The exit code is 0 if nothing differs, 1 if something does or would fail, and 2 if that cannot be told.

Without permission to patch objects it is found out without the API server's defaults and webhooks, and said so.`,
		Example: `  # what would be put back if it were resumed?
  kubectl mr diff webshop-app -n garden

  # what would these manifests change? (in CI: fails if anything)
  kubectl mr diff webshop-app -n garden -f manifests/

  # what would a Helm chart change?
  kubectl mr diff webshop-app -n garden --chart ./chart --values production.yaml

  # what would going back to an earlier revision change?
  kubectl mr diff webshop-app -n garden --set webshop-app-1f2e3d4c`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			if err := o.output.Check(); err != nil {
				return err
			}
			return o.run(command.Context(), c, names)
		},
	}
	flags := command.Flags()
	o.AddFlags(flags)
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML, console.FormatName)
	flags.BoolVar(&o.brief, "brief", false, "Only which objects differ")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	results, _, err := o.Foresee(ctx, c, names)
	if err != nil || len(results) == 0 {
		return err
	}
	if err := o.print(c, results); err != nil {
		return err
	}
	if slices.ContainsFunc(results, preview.Result.Differs) {
		return &console.NoError{}
	}
	return nil
}
