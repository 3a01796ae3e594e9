// Command gardenlet deploys the components of a Seed, and reports to the garden.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/config"
	"github.com/trellis-k8s/trellis/pkg/program"
)

// version is set by the linker.
var version = "dev"

func main() { program.Execute(signals.SetupSignalHandler(), newCommand()) }

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
		Version: version, Load: load, Run: run,
	}.Command()
}

// load reads the configuration file. Environment variables override the kubeconfigs.
func load(path string) (*gardenletv1alpha1.GardenletConfiguration, error) {
	c, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	if path := os.Getenv("KUBECONFIG"); path != "" {
		c.SeedClientConnection.Kubeconfig = path
	}
	if path := os.Getenv("GARDEN_KUBECONFIG"); path != "" {
		c.GardenClientConnection.Kubeconfig = path
	}
	return c, nil
}
