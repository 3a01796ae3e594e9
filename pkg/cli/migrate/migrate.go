// Package migrate provides the command that shows how objects change when the resource-manager takes them over from
// the tool that
// currently applies them.
package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/diff"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

type options struct {
	diff.Subjects
	output *console.Output
	from   string
	brief  bool
	back   bool
}

// report describes the migration of the objects of a ManagedResource.
type report struct {
	preview.Result
	// Changes replace the changes of the result.
	Changes []object `json:"changes"`
}

// object describes the migration of one object.
type object struct {
	preview.Entry
	// Owners are the tools that currently apply it.
	Owners []Owner `json:"owners,omitempty"`
	Handover
}

// NewCommand returns the command migrate.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "migrate [NAME...] [-f PATH... | -k FOLDER | --chart PATH]",
		Short: "Show what taking over from another tool would change",
		Long: `Shows, object by object, what changes when the resource-manager takes over objects that gardener-resource-manager, Flux, Argo CD,
Helm or kubectl currently apply: which tool applies them, which of its fields are taken over, kept or removed, and what else changes.
It is a preview like diff, and writes nothing. At the end it lists steps for the other tools, so that they neither revert the changes
of the resource-manager nor delete objects when they are removed.

To migrate from gardener-resource-manager, specify the ManagedResources. To migrate from other tools, specify the name of the new
ManagedResource, and the manifests that the tool currently applies with -f, -k or --chart.

With --back, it prepares the way back: it changes the status of ManagedResources, so that gardener-resource-manager can take over again.

  + is created   ~ is changed   = is taken over unchanged   - is deleted   ± is replaced   ! fails   … waits

The exit code is 0 if only field ownership changes, 1 if an object changes or would fail, and 2 on errors.`,
		Example: `  # migrate a cluster from gardener-resource-manager
  kubectl mr migrate -A

  # migrate manifests that Flux applies
  kubectl mr migrate webshop -n garden -f manifests/

  # migrate a HelmRelease, or an Application of a chart
  kubectl mr migrate webshop -n garden --chart ./chart --release-name webshop --release-namespace shop

  # show only the objects that Argo CD applies
  kubectl mr migrate webshop -n garden -k overlays/production --from argocd

  # go back to gardener-resource-manager, after the resource-manager was stopped
  kubectl mr migrate -A --back`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			if o.from != "" && !slices.Contains(tools, o.from) {
				return fmt.Errorf("invalid --from %q: must be one of %s", o.from, strings.Join(tools, ", "))
			}
			if o.back {
				return o.goBack(command.Context(), c, names)
			}
			return o.run(command.Context(), c, names)
		},
	}
	flags := command.Flags()
	o.AddFlags(flags)
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML)
	flags.StringVar(&o.from, "from", "", "Show only objects of this tool: "+strings.Join(tools, ", "))
	console.CompleteWith(command, "from", tools)
	flags.BoolVar(&o.back, "back", false, "After the resource-manager was stopped, remove the condition Ready from the status of "+
		"ManagedResources, because gardener-resource-manager would not update it")
	flags.BoolVar(&o.brief, "brief", false, "Show only which objects are taken over, and from which tool")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	results, previewer, err := o.Preview(ctx, c, names)
	if err != nil || len(results) == 0 {
		return err
	}
	progress := c.Begin("Reading the field ownership")
	reports := make([]report, 0, len(results))
	for _, result := range results {
		report, err := o.reportOf(ctx, c, previewer, result)
		if err != nil {
			progress.End()
			return err
		}
		reports = append(reports, report)
	}
	progress.End()
	predecessors := predecessorsOf(reports)
	if o.output.Format != "" {
		err = c.PrintValue(o.output.Format, map[string]any{"managedResources": reports, "predecessors": predecessors})
	} else {
		err = o.print(c, reports, predecessors)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(reports, report.differs) {
		return &console.NoError{}
	}
	return nil
}

// differs reports whether any of the objects changes or would fail.
func (r report) differs() bool {
	return len(r.Problems) > 0 || slices.ContainsFunc(r.Changes, func(o object) bool { return o.Verb != preview.Nothing })
}

func (o *options) reportOf(ctx context.Context, c *console.Console, previewer *preview.Previewer, result preview.Result) (report, error) {
	found := report{Result: result}
	for _, entry := range result.Changes {
		object := object{Entry: entry}
		copied, err := previewer.Look(ctx, entry.Ref)
		switch {
		case apierrors.IsForbidden(err):
			c.Warn("Field ownership not shown, because you may not read it: %s.", entry.Title())
		case err != nil:
			return found, fmt.Errorf("read %s: %w", entry.Title(), err)
		case copied.Before != nil:
			object.Owners = ownersOf(copied.Before)
			after := copied.Before
			if copied.After != nil {
				after = copied.After
			}
			object.Handover, err = handoverOf(copied.Before.GetManagedFields(), after.GetManagedFields(), fieldowner.DefaultPolicy())
			if err != nil {
				return found, fmt.Errorf("%s: %w", entry.Title(), err)
			}
		}
		if o.from == "" || slices.ContainsFunc(object.Owners, func(owner Owner) bool { return string(owner.Tool) == o.from }) {
			found.Changes = append(found.Changes, object)
		}
	}
	return found, nil
}
