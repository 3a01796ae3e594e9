// Command etcd-operator deploys the etcd clusters that Etcds declare.
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
		Short: "Deploy the etcd clusters that Etcds declare",
		Long: `etcd-operator watches Etcds (druid.gardener.cloud/v1alpha1) and emits a ManagedResource with a StatefulSet and its related objects
for each Etcd. The members write their state to their Leases, and etcd-operator reports it in the status of the Etcd. It replaces members
one at a time and schedules their defragmentation. It does not connect to etcd.`,
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
