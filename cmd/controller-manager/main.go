// Command controller-manager runs the controllers of a garden, which need no access to seeds.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/config"
)

// version is set by the linker.
var version = "dev"

func main() {
	if err := newCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "controller-manager: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var configFile string
	command := &cobra.Command{
		Use:   "controller-manager --config FILE",
		Short: "Run the controllers of a garden",
		Long: `controller-manager runs beside the garden's API server. It decides which extensions are installed in which Seeds,
keeps what is in use from being deleted, and lets gardenlets read the Secrets that Shoots of their Seeds name.

Environment:
  KUBECONFIG  overrides gardenClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/controller-manager.md)
  controller-manager --config controller-manager.yaml

  # run outside of the garden
  KUBECONFIG=garden.kubeconfig controller-manager --config controller-manager.yaml`,
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
				c.GardenClientConnection.Kubeconfig = path
			}
			return run(command.Context(), c)
		},
	}
	command.Flags().StringVar(&configFile, "config", "", "path of the configuration file")
	command.SetVersionTemplate("{{.Version}}\n")
	return command
}
