// Package app is the program operator, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/config"
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
	return program.Program[*v1alpha1.OperatorConfiguration]{
		Name:  "operator",
		Short: "Turn a cluster and one Garden into a garden",
		Long: `operator runs in the runtime cluster of a garden. It deploys the API server of the virtual garden and the components of the
garden as ManagedResources, which the resource-managers of the runtime cluster and of the virtual garden apply.

Environment:
  KUBECONFIG  overrides runtimeClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/operator.md)
  operator --config operator.yaml

  # run outside of the runtime cluster
  KUBECONFIG=runtime.kubeconfig operator --config operator.yaml`,
		Version: version, Load: config.Load, Run: run,
		Overrides: func(c *v1alpha1.OperatorConfiguration) map[string]*string {
			return map[string]*string{"KUBECONFIG": &c.RuntimeClientConnection.Kubeconfig}
		},
	}.Command()
}
