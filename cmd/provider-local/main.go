// Command provider-local is the extension that provides infrastructure on the machine on which the seed runs.
package main

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/program"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// version is set by the linker.
var version = "dev"

func main() { program.Execute(signals.SetupSignalHandler(), newCommand()) }

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   local.Name,
		Short: "Extension that provides infrastructure on the machine on which the seed runs",
		Long: `provider-local is the extension with the type "local". Machines are Pods of the seed that boot with systemd, DNS records are
files of CoreDNS, and backups are directories. It is for development and tests. See docs/provider-local.md.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.SetVersionTemplate("{{.Version}}\n")
	command.AddCommand(newControllersCommand(), newAdmissionCommand(), newBastionCommand())
	return command
}
