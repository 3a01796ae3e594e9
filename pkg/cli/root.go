// Package cli provides kubectl mr, the operators' command line for ManagedResources.
package cli

import (
	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/pkg/cli/act"
	"github.com/trellis-k8s/trellis/pkg/cli/cani"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/create"
	"github.com/trellis-k8s/trellis/pkg/cli/decode"
	"github.com/trellis-k8s/trellis/pkg/cli/diff"
	"github.com/trellis-k8s/trellis/pkg/cli/events"
	"github.com/trellis-k8s/trellis/pkg/cli/get"
	"github.com/trellis-k8s/trellis/pkg/cli/migrate"
	"github.com/trellis-k8s/trellis/pkg/cli/owner"
	"github.com/trellis-k8s/trellis/pkg/cli/render"
	"github.com/trellis-k8s/trellis/pkg/cli/top"
	"github.com/trellis-k8s/trellis/pkg/cli/tree"
	"github.com/trellis-k8s/trellis/pkg/cli/ui"
	"github.com/trellis-k8s/trellis/pkg/cli/why"
)

// Command groups in the help.
const (
	groupLook    = "look"
	groupAct     = "act"
	groupDeliver = "deliver"
	groupOther   = "other"
)

// NewCommand returns the root command with its subcommands. It returns errors without printing them. The name is the
// command that
// the user enters.
func NewCommand(c *console.Console, name string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-mr",
		Short: "Inspect ManagedResources and find out why they are not ready",
		Long: `kubectl mr shows the state of ManagedResources and their objects, explains why they are not ready, and previews changes.

It reads ManagedResources and their Secrets from the cluster of the kubeconfig, as kubectl does. If their objects are in another
cluster, specify it with --target-kubeconfig (or TARGET_KUBECONFIG) or --target-context. The commands get, why, tree and top also
accept a Shoot (shoot/NAMESPACE/NAME) or a Seed (seed/NAME) of the garden that --garden-kubeconfig (or GARDEN_KUBECONFIG) or
--garden-context specifies, or a Garden (gardens/NAME) of the operator.

Exit codes: 0 for success; 1 for a negative result, such as differences found by diff; 2 for an error, such as a missing permission
or an unreachable cluster.`,
		Example: `  # show the state of all ManagedResources
  kubectl mr get -A

  # explain why some of them are not ready
  kubectl mr why -A`,
		Version:       c.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	root.SetOut(c.Screen.Writer)
	root.SetErr(c.Err.Writer)
	root.SetIn(c.In)
	root.SetVersionTemplate("{{.Version}}\n")
	c.AddFlags(root.PersistentFlags())
	if err := c.CompleteFlags(root); err != nil {
		panic(err) // the flags were defined above
	}
	root.AddGroup(&cobra.Group{ID: groupLook, Title: "Inspect:"}, &cobra.Group{ID: groupAct, Title: "Control:"},
		&cobra.Group{ID: groupDeliver, Title: "Deliver:"}, &cobra.Group{ID: groupOther, Title: "Other:"})
	root.SetUsageTemplate(usage)
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	add(root, groupLook, get.NewCommand(c), why.NewCommand(c), tree.NewCommand(c), top.NewCommand(c), events.NewCommand(c),
		owner.NewCommand(c), cani.NewCommand(c), ui.NewCommand(c))
	add(root, groupAct, act.NewReconcileCommand(c), act.NewSuspendCommand(c), act.NewResumeCommand(c), act.NewWaitCommand(c))
	add(root, groupDeliver, diff.NewCommand(c), create.NewCreateCommand(c), create.NewEncodeCommand(c), decode.NewCommand(c),
		render.NewCommand(c), migrate.NewCommand(c))
	add(root, groupOther, newOptionsCommand(c))
	return root
}

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, command := range commands {
		command.GroupID = group
		root.AddCommand(command)
	}
}
