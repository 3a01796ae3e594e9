// Package app is the program apiserver, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/apiserver"
	"github.com/trellis-k8s/trellis/pkg/program"
)

// version of the program.
var version = "dev"

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// Main runs the program with its command line, and exits if there is an error. linked is the version to report.
func Main(linked string) {
	version = linked
	command, err := newCommand()
	if err != nil {
		fmt.Fprintf(os.Stderr, "apiserver: %v\n", err)
		os.Exit(1)
	}
	program.Execute(signals.SetupSignalHandler(), command)
}

func newCommand() (*cobra.Command, error) {
	options, err := apiserver.NewOptions()
	if err != nil {
		return nil, err
	}
	var logging logging
	command := &cobra.Command{
		Use:   "apiserver --cluster-identity NAME --etcd-servers URL --tls-cert-file FILE --tls-private-key-file FILE [flags]",
		Short: "Serve the API of the garden",
		Long: `apiserver serves the groups core, seedmanagement, operations, security and settings.gardener.cloud. It stores objects in
etcd, and asks the kube-apiserver of the garden who a client is and what it may do.`,
		Example: `  # In a Pod of the garden itself.
  apiserver --cluster-identity my-garden --etcd-servers http://etcd:2379 --tls-cert-file tls.crt --tls-private-key-file tls.key

  # For a garden elsewhere.
  apiserver --cluster-identity my-garden --etcd-servers http://etcd:2379 --tls-cert-file tls.crt --tls-private-key-file tls.key \
    --kubeconfig garden --authentication-kubeconfig garden --authorization-kubeconfig garden

  # With encryption at rest and an audit log, besides the flags above.
  apiserver ... --encryption-provider-config encryption.yaml --audit-policy-file policy.yaml --audit-log-path /var/log/audit.log`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	versionPrinted := program.VersionFlag(command, version)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if versionPrinted() {
			return nil
		}
		if err := logging.apply(); err != nil {
			return err
		}
		server, err := options.New(version)
		if err != nil {
			return err
		}
		return server.Run(command.Context())
	}
	options.AddFlags(command.Flags())
	logging.addFlags(command.Flags())
	return command, nil
}
