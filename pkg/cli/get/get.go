// Package get is the command that lists ManagedResources with their states.
package get

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/relations"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

type options struct {
	console.Choice
	output *kubectl.Output
	// unhealthy omits ManagedResources that are ready or suspended.
	unhealthy bool
	watch     bool
	noHeaders bool
}

// NewCommand returns the command get.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:     "get [NAME... | shoot/NAMESPACE/NAME | seed/NAME | gardens/NAME]",
		Aliases: []string{"list", "ls"},
		Short:   "List ManagedResources with their states",
		Long: `Lists ManagedResources with their states, the time in this state, and the problem.

  Ready        all objects are applied, healthy and rolled out
  Progressing  objects are being rolled out
  Applying     objects are being applied or deleted
  Waiting      another ManagedResource must be ready first (spec.dependsOn)
  Pending      no resource-manager has processed the last change
  Unhealthy    an object is missing or not healthy
  Failed       something could not be applied or deleted
  Deleting     it and its objects are being deleted
  Suspended    reconciliation is suspended
  Unknown      the conditions do not show the state

For a Shoot or a Seed of a garden, it shows the state of the Shoot or Seed, and its ManagedResources in the order in which they are
deployed. The garden is the cluster of --garden-kubeconfig or --garden-context. The default is the cluster with the ManagedResources.`,
		Example: `  # list the ManagedResources of all namespaces
  kubectl mr get -A

  # list them with their conditions and dependencies
  kubectl mr get -n garden -o wide

  # list those that need attention, and watch them
  kubectl mr get -A --unhealthy -w

  # reconcile those that need attention
  kubectl mr get -A --unhealthy -o name | xargs kubectl mr reconcile

  # show a Shoot and its ManagedResources in the seed
  kubectl mr get shoot/garden-dev/one --garden-kubeconfig garden.kubeconfig`,
		ValidArgsFunction: fleet.Complete(c, c.CompleteNames(0)),
		RunE: func(command *cobra.Command, names []string) error {
			run := o.run
			if o.watch {
				run = o.follow
			}
			return fleet.Dispatch(command.Context(), c, names, o.Choice, o.runOf, run)
		},
	}
	o.AddFlags(command.Flags())
	o.output = kubectl.AddObjectOutputFlags(command, console.FormatWide)
	command.Flags().BoolVar(&o.unhealthy, "unhealthy", false, "Show only those that are neither ready nor suspended")
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "After listing, watch for changes")
	command.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Do not print the header")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	all, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return err
	}
	shown := make([]resourcesv1alpha1.ManagedResource, 0, len(all))
	for i := range all {
		if o.includes(&all[i]) {
			shown = append(shown, all[i])
		}
	}
	switch {
	case o.printsFullNames():
		return printFullNames(c, shown)
	case !o.output.IsText():
		return o.output.PrintObjects(c, shown, len(names) == 1)
	}
	if len(shown) == 0 {
		o.warnOfEmptyList(c, len(all))
		return nil
	}
	return c.Screen.Print(o.table(shown, c.Clock.Now()))
}

// printsFullNames reports whether to print names with their namespaces, because other commands could not know the
// namespace.
func (o *options) printsFullNames() bool {
	return o.AllNamespaces && o.output.Format == console.FormatName
}

// printFullNames prints names in the format that other commands accept.
func printFullNames(c *console.Console, items []resourcesv1alpha1.ManagedResource) error {
	for i := range items {
		if _, err := fmt.Fprintln(c.Screen, state.NameOf(&items[i])); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) includes(mr *resourcesv1alpha1.ManagedResource) bool {
	return !o.unhealthy || !state.Of(mr).Word.IsWell()
}

// warnOfEmptyList prints on standard error why the list is empty.
func (o *options) warnOfEmptyList(c *console.Console, others int) {
	where := "in any namespace"
	if !o.AllNamespaces {
		namespace, err := c.Namespace()
		if err != nil {
			namespace = "default"
		}
		where = fmt.Sprintf("in namespace %s", namespace)
	}
	switch {
	case others > 0:
		c.Warn("All %d ManagedResources %s are ready or suspended.", others, where)
	case o.AllNamespaces:
		c.Warn("No ManagedResources found %s.", where)
	default:
		c.Warn("No ManagedResources found %s. Use -A to list all namespaces.", where)
	}
}

// table returns one row for each ManagedResource.
func (o *options) table(items []resourcesv1alpha1.ManagedResource, now time.Time) screen.Table {
	table := screen.Table{Columns: o.columns(items), Bare: o.noHeaders}
	for i := range items {
		table.Rows = append(table.Rows, o.row(table.Columns, &items[i], now))
	}
	return table
}

// Column headers.
const (
	headerNamespace   = "NAMESPACE"
	headerName        = "NAME"
	headerClass       = "CLASS"
	headerState       = "STATE"
	headerSince       = "SINCE"
	headerObjects     = "OBJECTS"
	headerAge         = "AGE"
	headerApplied     = "APPLIED"
	headerHealthy     = "HEALTHY"
	headerProgressing = "PROGRESSING"
	headerDependsOn   = "DEPENDS ON"
	headerSecrets     = "SECRETS"
	headerMessage     = "MESSAGE"
)

func (o *options) columns(items []resourcesv1alpha1.ManagedResource) []screen.Column {
	var columns []screen.Column
	if o.AllNamespaces {
		columns = append(columns, screen.Column{Header: headerNamespace, Least: 9, Middle: true})
	}
	columns = append(columns, screen.Column{Header: headerName, Least: 16, Middle: true})
	if o.output.Format == console.FormatWide || hasClasses(items) {
		columns = append(columns, screen.Column{Header: headerClass, Spare: 4})
	}
	columns = append(columns, screen.Column{Header: headerState}, screen.Column{Header: headerSince, Spare: 1},
		screen.Column{Header: headerObjects, Spare: 2}, screen.Column{Header: headerAge, Spare: 3})
	if o.output.Format == console.FormatWide {
		for _, header := range []string{headerApplied, headerHealthy, headerProgressing, headerDependsOn, headerSecrets} {
			columns = append(columns, screen.Column{Header: header})
		}
	}
	message := screen.Column{Header: headerMessage, Least: 24, Spare: 5}
	if o.output.Format == console.FormatWide {
		message.Least, message.Spare = 0, 0
	}
	return append(columns, message)
}

// hasClasses reports whether any ManagedResource has a class other than the default class.
func hasClasses(items []resourcesv1alpha1.ManagedResource) bool {
	for i := range items {
		if state.ClassOf(&items[i]) != resourcesv1alpha1.DefaultClass {
			return true
		}
	}
	return false
}

func (o *options) row(columns []screen.Column, mr *resourcesv1alpha1.ManagedResource, now time.Time) []screen.Cell {
	is := state.Of(mr)
	condition := func(conditionType resourcesv1alpha1.ConditionType) string {
		return string(resourcesv1alpha1.ConditionOf(mr.Status.Conditions, conditionType).Status)
	}
	texts := map[string]screen.Cell{
		headerNamespace:   {Text: mr.Namespace},
		headerName:        {Text: mr.Name},
		headerClass:       {Text: state.ClassOf(mr)},
		headerState:       {Text: string(is.Word), Style: is.Word.Style()},
		headerSince:       {Text: console.Age(is.Since, now)},
		headerObjects:     {Text: strconv.Itoa(len(mr.Status.Resources))},
		headerAge:         {Text: console.Age(mr.CreationTimestamp.Time, now)},
		headerApplied:     {Text: condition(resourcesv1alpha1.ResourcesApplied)},
		headerHealthy:     {Text: condition(resourcesv1alpha1.ResourcesHealthy)},
		headerProgressing: {Text: condition(resourcesv1alpha1.ResourcesProgressing)},
		headerDependsOn:   {Text: dependenciesOf(mr)},
		headerSecrets:     {Text: secretsOf(mr)},
		headerMessage:     {Text: is.Headline()},
	}
	row := make([]screen.Cell, 0, len(columns))
	for _, column := range columns {
		row = append(row, texts[column.Header])
	}
	return row
}

// dependenciesOf returns the dependencies of a ManagedResource in the format of create --depends-on, without its own
// namespace.
func dependenciesOf(mr *resourcesv1alpha1.ManagedResource) string {
	dependencies := relations.Of(mr).DependsOn
	texts := make([]string, 0, len(dependencies))
	for _, dependency := range dependencies {
		texts = append(texts, strings.TrimPrefix(dependency.String(), mr.Namespace+"/"))
	}
	return strings.Join(texts, ",")
}

func secretsOf(mr *resourcesv1alpha1.ManagedResource) string {
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, reference := range mr.Spec.SecretRefs {
		names = append(names, reference.Name)
	}
	return strings.Join(names, ",")
}

// follow prints ManagedResources, and then every change.
func (o *options) follow(ctx context.Context, c *console.Console, names []string) error {
	if !o.output.IsText() && o.output.Format != console.FormatName {
		return fmt.Errorf("--watch supports only the default, wide and name output, not %s", o.output.Format)
	}
	chosen, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return err
	}
	shown := map[string]string{}
	header := false
	return c.Follow(ctx, chosen, len(names) > 0, o.Choice, func(mr *resourcesv1alpha1.ManagedResource, gone bool) error {
		if o.output.Format == console.FormatName {
			return o.followNames(c, shown, mr, gone)
		}
		key := mr.Namespace + "/" + mr.Name
		table := o.table([]resourcesv1alpha1.ManagedResource{*mr}, c.Clock.Now())
		text := fmt.Sprint(state.Of(mr), len(mr.Status.Resources))
		if gone {
			for i, column := range table.Columns {
				switch column.Header {
				case headerState:
					table.Rows[0][i] = screen.Cell{Text: "Deleted", Style: screen.Faint}
				case headerMessage, headerSince:
					table.Rows[0][i].Text = ""
				}
			}
			text = "Deleted"
		}
		_, wasShown := shown[key]
		if shown[key] == text || !o.includes(mr) && !wasShown {
			return nil
		}
		shown[key] = text
		table.Bare = header || o.noHeaders
		header = true
		return c.Screen.Print(table.Steady(followWidths))
	})
}

func (o *options) followNames(c *console.Console, shown map[string]string, mr *resourcesv1alpha1.ManagedResource, gone bool) error {
	key := mr.Namespace + "/" + mr.Name
	if gone || !o.includes(mr) || shown[key] == string(state.Of(mr).Word) {
		return nil
	}
	shown[key] = string(state.Of(mr).Word)
	if o.printsFullNames() {
		return printFullNames(c, []resourcesv1alpha1.ManagedResource{*mr})
	}
	return o.output.PrintObjects(c, []resourcesv1alpha1.ManagedResource{*mr}, true)
}

// followWidths are the column widths for rows that are printed one by one.
var followWidths = map[string]int{
	headerNamespace: 16, headerName: 32, headerClass: 9, headerState: 11, headerSince: 5, headerObjects: 7, headerAge: 5,
	headerApplied: 11, headerHealthy: 7, headerProgressing: 11, headerDependsOn: 24, headerSecrets: 24,
}
