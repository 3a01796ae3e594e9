// Package app is the program admission-controller, apart from its function main. Test packages that run the program import it, so that
// go test does not answer from its cache when the program has changed.
package app

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/config"
	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
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
	return program.Program[*v1alpha1.AdmissionControllerConfiguration]{
		Name:  "admission-controller",
		Short: "Serve the admission webhooks of a garden",
		Long: `admission-controller runs next to the garden's API server. It checks objects that users write and the API server of Kubernetes
serves: Secrets with kubeconfigs, the configuration files of kube-apiservers, the deletion of namespaces, and the size of objects.

Environment:
  KUBECONFIG  overrides gardenClientConnection.kubeconfig`,
		Example: `  # run with a configuration file (see docs/admission-controller.md)
  admission-controller --config admission-controller.yaml

  # run outside of the garden
  KUBECONFIG=garden.kubeconfig admission-controller --config admission-controller.yaml`,
		Version: version, Load: config.Load, Run: run,
		Overrides: func(c *v1alpha1.AdmissionControllerConfiguration) map[string]*string {
			return map[string]*string{"KUBECONFIG": &c.GardenClientConnection.Kubeconfig}
		},
	}.Command()
}
