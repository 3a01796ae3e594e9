// Command etcd-operator brings up what Etcds declare.
package main

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/program"
)

// version is set by the linker.
var version = "dev"

func main() { program.Execute(signals.SetupSignalHandler(), newCommand()) }

func newCommand() *cobra.Command {
	return program.Program[*config.Operator]{
		Name:  "etcd-operator",
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
		Version: version, Load: config.LoadOperator, Run: run,
	}.Command()
}
