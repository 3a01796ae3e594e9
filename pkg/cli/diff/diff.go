// Package diff provides the command that shows what applying a ManagedResource would change. It uses the
// resource-manager's own
// plan and apply engine.
package diff

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/cli/render"
)

type options struct {
	Subjects
	output *console.Output
	brief  bool
	// render is set if -f names declarations that are rendered by flows, with the settings in flow.
	render bool
	flow   render.Settings
}

// NewCommand returns the command diff.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "diff [NAME...] [-f PATH... | -k FOLDER | --chart PATH | --set SECRET,...]",
		Short: "Show what applying ManagedResources would change",
		Long: `Shows what the resource-manager would change if it applied ManagedResources now: manual changes to the objects of suspended
ManagedResources, changes that are not applied yet, or, with -f, the changes in other manifests. It uses the resource-manager's own
code and server-side dry runs, which include defaults and webhooks. It writes nothing. The values of Secrets are redacted.

  + is created   ~ is changed   - is deleted   ± is replaced   ! fails   … waits

With --render it also shows the ManagedResources that flows would delete, with their objects.

The exit code is 0 if there are no differences, 1 if something differs or would fail, and 2 on errors.

Without permission to patch objects, the result lacks the API server's defaults and webhooks, and a warning names the kinds.`,
		Example: `  # show what resuming would revert
  kubectl mr diff webshop-app -n garden

  # show what these manifests would change (in CI: fails if anything changes)
  kubectl mr diff webshop-app -n garden -f manifests/

  # show what a Helm chart would change
  kubectl mr diff webshop-app -n garden --chart ./chart --values production.yaml

  # show what a flow would change and delete, from a declaration
  kubectl mr diff --render -f site.yaml

  # show what a rollback to an earlier revision would change
  kubectl mr diff webshop-app -n garden --set webshop-app-1f2e3d4c`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			return o.run(command.Context(), c, names)
		},
	}
	flags := command.Flags()
	o.AddFlags(flags)
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML, console.FormatName)
	flags.BoolVar(&o.render, "render", false, "Render the declarations in -f with their flows first, as kubectl mr render does")
	o.flow.AddFlags(flags)
	flags.BoolVar(&o.brief, "brief", false, "Show only which objects differ")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	results, err := o.results(ctx, c, names)
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

func (o *options) results(ctx context.Context, c *console.Console, names []string) ([]preview.Result, error) {
	if o.render {
		return o.previewRendered(ctx, c, names)
	}
	results, _, err := o.Preview(ctx, c, names)
	return results, err
}
