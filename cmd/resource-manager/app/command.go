// Package app is the program resource-manager, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/program"
)

// version of the program.
var version = "dev"

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// Main runs the program with its command line, and exits if there is an error. linked is the version to report.
func Main(linked string) {
	version = linked
	ctx := signals.SetupSignalHandler()
	go tendHeap(ctx)
	program.Execute(ctx, newCommand())
}

func newCommand() *cobra.Command {
	var extraTargetNamespaces []string
	command := program.Program[*configv1alpha1.ResourceManagerConfiguration]{
		Name:  "resource-manager",
		Short: "Apply the manifests of ManagedResources to a target cluster and correct drift",
		Long: `resource-manager watches ManagedResources in a source cluster, applies the manifests in their Secrets to a target cluster with
server-side apply, and reports the result in the conditions of the ManagedResources.

Environment:
  KUBECONFIG         overrides sourceClientConnection.kubeconfig
  TARGET_KUBECONFIG  overrides targetClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/configuration.md)
  resource-manager --config resource-manager.yaml

  # manage the objects of another cluster
  TARGET_KUBECONFIG=shoot.kubeconfig resource-manager --config resource-manager.yaml`,
		Version: version, Run: run,
		Load: func(path string) (*configv1alpha1.ResourceManagerConfiguration, error) {
			config, err := configv1alpha1.Load(path)
			if err != nil {
				return nil, err
			}
			config.ApplyOverrides(os.Getenv("KUBECONFIG"), os.Getenv("TARGET_KUBECONFIG"), extraTargetNamespaces)
			return config, nil
		},
	}.Command()
	command.Flags().StringArrayVar(&extraTargetNamespaces, "extra-target-namespace", nil,
		"namespace to add to targetClientConnection.namespaces; may be repeated")
	return command
}
