// Package app is the program controller-manager, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	controllermanagerv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/config"
	"github.com/trellis-k8s/trellis/pkg/program"
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
	return program.Program[*controllermanagerv1alpha1.ControllerManagerConfiguration]{
		Name:  "controller-manager",
		Short: "Run the controllers of a garden",
		Long: `controller-manager runs next to the garden's API server. It decides which extensions are installed in which Seeds,
protects objects in use from deletion, and grants gardenlets access to the Secrets that Shoots of their Seeds reference.

Environment:
  KUBECONFIG  overrides gardenClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/controller-manager.md)
  controller-manager --config controller-manager.yaml

  # run outside of the garden
  KUBECONFIG=garden.kubeconfig controller-manager --config controller-manager.yaml`,
		Version: version, Load: config.Load, Run: run,
		Overrides: func(c *controllermanagerv1alpha1.ControllerManagerConfiguration) map[string]*string {
			return map[string]*string{"KUBECONFIG": &c.GardenClientConnection.Kubeconfig}
		},
	}.Command()
}
