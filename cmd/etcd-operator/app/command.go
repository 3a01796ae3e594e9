// Package app is the program etcd-operator, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
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
