// Package app is the program scheduler, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	schedulerv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/scheduler/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/program"
	"github.com/trellis-k8s/trellis/pkg/scheduler/config"
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
	return program.Program[*schedulerv1alpha1.SchedulerConfiguration]{
		Name:  "scheduler",
		Short: "Assign the Shoots of a garden to Seeds",
		Long: `scheduler runs next to the garden's API server. It chooses a Seed for each Shoot that has none, binds the Shoot to it, or reports
in the status of the Shoot why no Seed is eligible.

Environment:
  KUBECONFIG  overrides clientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/scheduler.md)
  scheduler --config scheduler.yaml

  # run outside of the garden
  KUBECONFIG=garden.kubeconfig scheduler --config scheduler.yaml`,
		Version: version, Load: config.Load, Run: run,
		Overrides: func(c *schedulerv1alpha1.SchedulerConfiguration) map[string]*string {
			return map[string]*string{"KUBECONFIG": &c.ClientConnection.Kubeconfig}
		},
	}.Command()
}
