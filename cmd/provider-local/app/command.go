// Package app is the program provider-local, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/program"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// version of the program.
var version = "dev"

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// Main runs the program with its command line, and exits if there is an error. linked is the version to report.
func Main(linked string) {
	version = linked
	program.Execute(signals.SetupSignalHandler(), newCommand())
}

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
