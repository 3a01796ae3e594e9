package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// usage is the usage template. Unlike the template of cobra, it omits the global flags, which are as numerous as those of kubectl.
const usage = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $commands}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .LocalNonPersistentFlags.HasAvailableFlags}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command, and "{{.Root.CommandPath}} options" for the flags of all commands.
{{else}}

Use "{{.Root.CommandPath}} options" for the flags of all commands, such as -n, --context and --target-kubeconfig.
{{end}}`

// newOptionsCommand returns the command that prints the global flags.
func newOptionsCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Show the flags of all commands",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.Screen, "These flags can be used with every command:\n\n%s", command.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}
