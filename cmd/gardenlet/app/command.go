// Package app is the program gardenlet, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/config"
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
	return program.Program[*gardenletv1alpha1.GardenletConfiguration]{
		Name:  "gardenlet",
		Short: "Deploy the components of a Seed, and report to the garden",
		Long: `gardenlet runs in a seed cluster. It registers its Seed in the garden, deploys the components of the Seed as
ManagedResources, which the resource-manager of the seed applies, and reports the health of the Seed.

Environment:
  KUBECONFIG         overrides seedClientConnection.kubeconfig
  GARDEN_KUBECONFIG  overrides gardenClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/gardenlet.md)
  gardenlet --config gardenlet.yaml

  # run outside of the seed
  KUBECONFIG=seed.kubeconfig gardenlet --config gardenlet.yaml`,
		Version: version, Load: config.Load, Run: run,
		Overrides: func(c *gardenletv1alpha1.GardenletConfiguration) map[string]*string {
			return map[string]*string{"KUBECONFIG": &c.SeedClientConnection.Kubeconfig, "GARDEN_KUBECONFIG": &c.GardenClientConnection.Kubeconfig}
		},
	}.Command()
}
