// Command resource-manager applies the manifests of ManagedResources to a target cluster, and corrects drift.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx := signals.SetupSignalHandler()
	go tendHeap(ctx)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "resource-manager: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var configFile string
	var showVersion bool
	var extraTargetNamespaces []string
	command := &cobra.Command{
		Use:   "resource-manager --config FILE",
		Short: "Apply the manifests of ManagedResources to a target cluster and correct drift",
		Long: `resource-manager watches ManagedResources in a source cluster, applies the manifests in the Secrets that
they name to a target cluster with server-side apply, and reports the result in their conditions.

Environment:
  KUBECONFIG         overrides sourceClientConnection.kubeconfig
  TARGET_KUBECONFIG  overrides targetClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/configuration.md)
  resource-manager --config resource-manager.yaml

  # manage the objects of another cluster
  TARGET_KUBECONFIG=shoot.kubeconfig resource-manager --config resource-manager.yaml`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			if showVersion {
				fmt.Fprintln(command.OutOrStdout(), version)
				return nil
			}
			if configFile == "" {
				return errors.New(`required flag(s) "config" not set: name the configuration file`)
			}
			config, err := configv1alpha1.Load(configFile)
			if err != nil {
				return err
			}
			config.ApplyOverrides(os.Getenv("KUBECONFIG"), os.Getenv("TARGET_KUBECONFIG"), extraTargetNamespaces)
			return run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&configFile, "config", "", "path of the configuration file")
	flags.StringArrayVar(&extraTargetNamespaces, "extra-target-namespace", nil,
		"namespace to add to targetClientConnection.namespaces; may be repeated")
	// Not cobra's own flag: its templates call methods by name, for which the linker would have to keep all there are (14 MB).
	flags.BoolVarP(&showVersion, "version", "v", false, "print the version")
	return command
}
