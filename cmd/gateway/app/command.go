// Package app is the program gateway, apart from its function main.
package app

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/gateway"
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
	o, name := gateway.Options{}, ""
	command := &cobra.Command{
		Use: "gateway --gateway NAMESPACE/NAME", Short: "Pass TLS connections through to Services by the server name in the handshake",
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		Long: `gateway implements one Gateway of the Gateway API, whose GatewayClass has the controller name trellis.local/gateway. It reads the server name
of TLS connections, and forwards them to the Service of the TLSRoute with this host, without decrypting them. It reads no Secrets.

The commands node-address and node-proxy run on the nodes of Shoots.

It is ready when it knows all hosts. After the signal to end, it serves for a while, though it is not ready; then it accepts no connections,
and ends each one when it is quiet.`,
		Example: "  gateway --gateway=istio-ingress/kube-apiservers --service=istio-ingressgateway",
	}
	printed := program.VersionFlag(command, version)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if printed() {
			return nil
		}
		if err := check(&o, name); err != nil {
			return err
		}
		o.Version = version
		return gateway.Run(command.Context(), o)
	}
	flags := command.Flags()
	flags.StringVar(&name, "gateway", "", "namespace and name of the Gateway")
	flags.StringVar(&o.Service, "service", "", "name of the Service in its namespace that has the addresses of the Gateway")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig; default: the service account of the Pod")
	flags.StringVar(&o.TLSAddress, "tls-address", ":9443", "address at which connections with TLS are accepted")
	flags.StringVar(&o.ConnectAddress, "connect-address", "", "address at which requests with the method CONNECT to a host of a TLSRoute are accepted; default: none")
	flags.StringVar(&o.HealthAddress, "health-address", ":8080", "address at which /healthz and /readyz are served, without TLS")
	flags.StringVar(&o.MetricsAddress, "metrics-address", ":8081", "address at which metrics are served, without TLS")
	flags.Int32Var(&o.ListenerPort, "listener-port", 443, "port of the listeners in the Gateway that are served")
	flags.BoolVar(&o.ProxyProtocol, "proxy-protocol", false, "accept a header of the PROXY protocol before connections")
	flags.IntVar(&o.Limits.Connections, "max-connections", 40000, "most connections at the same time")
	flags.IntVar(&o.Limits.PerDestination, "max-connections-per-backend", 10000, "most connections to one port of a Service at the same time")
	flags.DurationVar(&o.ShutdownDelay, "shutdown-delay", 15*time.Second, "how long the gateway serves after the signal to end; it is not ready meanwhile")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 60*time.Second, "how long connections that are not quiet may last after that")
	flags.StringVar(&o.LogLevel, "log-level", "info", "debug, info or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
	command.AddCommand(addressCommand(), proxyCommand())
	return command
}

// check completes the options, and returns an error that names a wrong flag.
func check(o *gateway.Options, name string) error {
	if name == "" {
		return errors.New("--gateway is missing: set it to the namespace and the name of a Gateway")
	}
	namespace, name, _ := strings.Cut(name, "/")
	if namespace == "" || name == "" {
		return errors.New("--gateway is not valid: want NAMESPACE/NAME")
	}
	if o.Limits.Connections < 1 || o.Limits.PerDestination < 1 {
		return errors.New("--max-connections and --max-connections-per-backend must be positive")
	}
	o.Gateway, o.Limits.Opening = types.NamespacedName{Namespace: namespace, Name: name}, max(o.Limits.Connections/4, 1)
	return nil
}
