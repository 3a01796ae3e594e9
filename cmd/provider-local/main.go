// Command provider-local is the extension for infrastructure on the machine that the seed runs on.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// version is set by the linker.
var version = "dev"

func main() {
	if err := newCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", local.Name, err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   local.Name,
		Short: "Infrastructure on the machine that the seed runs on, as an extension",
		Long: `provider-local is the extension with the type "local". Machines are Pods of the seed that boot with systemd, DNS records are files of CoreDNS,
backups are directories. It is for development and tests. See docs/provider-local.md.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.SetVersionTemplate("{{.Version}}\n")
	command.AddCommand(newControllersCommand(), newAdmissionCommand(), newBastionCommand())
	return command
}
