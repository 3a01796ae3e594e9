// Package app is the program discovery-server, apart from its function main.
package app

import (
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/discoveryserver"
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
	o := discoveryserver.Options{}
	command := &cobra.Command{
		Use: "discovery-server --tls-cert-file FILE --tls-private-key-file FILE", Short: "Publish the documents of a garden's issuers of tokens",
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		Long: `discovery-server serves the OpenID Connect configuration and the public keys of the managed issuers of Shoots, which gardenlets write into the
namespace gardener-system-shoot-issuer of the garden, and those of the issuer of WorkloadIdentities, from files. It serves only documents that are
valid and belong to their path. It needs the right to list and watch Secrets in that namespace, and no other.

  /projects/<project>/shoots/<UID>/issuer/.well-known/openid-configuration
  /projects/<project>/shoots/<UID>/issuer/jwks
  /garden/workload-identity/issuer/.well-known/openid-configuration
  /garden/workload-identity/issuer/jwks

It reloads the certificate and the files when they change.`,
		Example: "  discovery-server --kubeconfig=garden.kubeconfig --tls-cert-file=tls.crt --tls-private-key-file=tls.key",
	}
	printed := program.VersionFlag(command, version)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if printed() {
			return nil
		}
		if o.CertificateFile == "" || o.KeyFile == "" {
			return errors.New("--tls-cert-file and --tls-private-key-file are missing: set them to the certificate of the server and its key")
		}
		o.Version = version
		return discoveryserver.Run(command.Context(), o)
	}
	flags := command.Flags()
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig of the garden; default: the service account of the Pod")
	flags.StringVar(&o.CertificateFile, "tls-cert-file", "", "path of the certificate of the server, in PEM")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", "", "path of the private key of this certificate, in PEM")
	flags.StringVar(&o.IdentityConfigurationFile, "workload-identity-openid-configuration-file", "", "path of the OpenID Connect configuration of the issuer of WorkloadIdentities; default: none")
	flags.StringVar(&o.IdentityKeysFile, "workload-identity-jwks-file", "", "path of the public keys of this issuer")
	flags.StringVar(&o.Address, "address", ":10443", "address at which documents are served, with TLS")
	flags.StringVar(&o.HealthAddress, "health-address", ":8081", "address at which /healthz and /readyz are served, without TLS")
	flags.StringVar(&o.MetricsAddress, "metrics-address", ":8080", "address at which metrics are served, without TLS")
	flags.StringVar(&o.LogLevel, "log-level", "info", "debug, info or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
	return command
}
