// Command gardenlet brings up what a Seed consists of, and reports to the garden.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/gardenlet/config"
)

// version is set by the linker.
var version = "dev"

func main() {
	if err := newCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "gardenlet: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var configFile string
	command := &cobra.Command{
		Use:   "gardenlet --config FILE",
		Short: "Bring up what a Seed consists of, and report to the garden",
		Long: `gardenlet runs in a seed cluster. It registers its Seed in the garden, brings up the components of the Seed as
ManagedResources, which the resource-manager of the seed applies, and reports the health of the Seed.

Environment:
  KUBECONFIG         overrides seedClientConnection.kubeconfig
  GARDEN_KUBECONFIG  overrides gardenClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/gardenlet.md)
  gardenlet --config gardenlet.yaml

  # run outside of the seed
  KUBECONFIG=seed.kubeconfig gardenlet --config gardenlet.yaml`,
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			if configFile == "" {
				return errors.New(`required flag(s) "config" not set: name the configuration file`)
			}
			c, err := config.Load(configFile)
			if err != nil {
				return err
			}
			if path := os.Getenv("KUBECONFIG"); path != "" {
				c.SeedClientConnection.Kubeconfig = path
			}
			if path := os.Getenv("GARDEN_KUBECONFIG"); path != "" {
				c.GardenClientConnection.Kubeconfig = path
			}
			return run(command.Context(), c)
		},
	}
	command.Flags().StringVar(&configFile, "config", "", "path of the configuration file")
	command.SetVersionTemplate("{{.Version}}\n")
	return command
}
