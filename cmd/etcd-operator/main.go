// Command etcd-operator brings up what Etcds declare.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
)

// version is set by the linker.
var version = "dev"

func main() {
	if err := newCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "etcd-operator: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var configFile string
	command := &cobra.Command{
		Use:   "etcd-operator --config FILE",
		Short: "Bring up the clusters of etcd that Etcds declare",
		Long: `etcd-operator watches Etcds (druid.gardener.cloud/v1alpha1), and emits a ManagedResource for each, with a StatefulSet and what belongs
to it. It reports the state of the members, which they write on their Leases, in the status of the Etcd. It replaces one member after the
other, and defragments them on schedule. It connects to no etcd.`,
		Example: `  # run with a configuration file (see docs/etcd.md)
  etcd-operator --config etcd-operator.yaml

  # a minimal configuration file, for a cluster outside
  apiVersion: etcdoperator.config.gardener.cloud/v1alpha1
  kind: EtcdOperatorConfiguration
  memberImage: registry.example.org/etcd-member:v1
  clientConnection: {kubeconfig: /home/me/.kube/config}
  leaderElection: {leaderElect: false}`,
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			if configFile == "" {
				return errors.New(`required flag(s) "config" not set: name the configuration file`)
			}
			settings, err := config.LoadOperator(configFile)
			if err != nil {
				return err
			}
			return run(command.Context(), settings)
		},
	}
	command.Flags().StringVar(&configFile, "config", "", "path of the configuration file")
	command.SetVersionTemplate("{{.Version}}\n")
	return command
}
