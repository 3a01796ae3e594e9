package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/pkg/gateway/nodeproxy"
	"github.com/trellis-k8s/trellis/pkg/process"
)

const (
	headerTimeout = 10 * time.Second
	// drainOfNode is how long connections may last after the signal to end.
	drainOfNode = 20 * time.Second
	// mostOfNode is the most connections on a node, as in Gardener.
	mostOfNode = 10000
)

// addressCommand gives a node an address.
func addressCommand() *cobra.Command {
	var ip, name string
	var once bool
	command := &cobra.Command{
		Use: "node-address", Short: "Keep an address on an interface of a node", Args: cobra.NoArgs,
		Long: "node-address creates a dummy interface with an address, and checks every minute that it is there. It needs the capability NET_ADMIN.",
		RunE: func(command *cobra.Command, _ []string) error {
			address, err := nodeproxy.NewAddress(ip, name)
			if err != nil {
				return fmt.Errorf("--ip-address: %w", err)
			}
			if once {
				return address.Ensure()
			}
			address.Keep(command.Context(), process.NewLogger("info", "json"))
			return nil
		},
	}
	command.Flags().StringVar(&ip, "ip-address", "", "the address")
	command.Flags().StringVar(&name, "interface", "apiserver-proxy", "name of the interface")
	command.Flags().BoolVar(&once, "once", false, "end when the node has the address")
	return command
}

// proxyCommand forwards connections on a node.
func proxyCommand() *cobra.Command {
	var server nodeproxy.Server
	var address, health string
	command := &cobra.Command{
		Use: "node-proxy", Short: "Forward connections on a node to the API server through a gateway", Args: cobra.NoArgs,
		Long: `node-proxy accepts connections at an address of a node. For each one it asks a gateway to connect to the API server, by a request with the
method CONNECT. It decrypts nothing.`,
		RunE: func(command *cobra.Command, _ []string) error {
			for flag, value := range map[string]string{"address": address, "gateway": server.Gateway, "host": server.Host} {
				if _, _, err := net.SplitHostPort(value); err != nil {
					return fmt.Errorf("--%s is %q: set it to a host and a port", flag, value)
				}
			}
			return runProxy(command.Context(), server, address, health)
		},
	}
	flags := command.Flags()
	flags.StringVar(&address, "address", "", "address at which connections are accepted")
	flags.StringVar(&server.Gateway, "gateway", "", "host and port at which the gateway accepts requests")
	flags.StringVar(&server.Host, "host", "", "host and port of the API server")
	flags.StringVar(&server.Destination, "destination", "", "the header X-Gardener-Destination, for gateways of Istio")
	flags.StringVar(&health, "health-address", ":16910", "address at which health and metrics are served, without TLS")
	return command
}

// runProxy forwards connections until the context ends.
func runProxy(ctx context.Context, to nodeproxy.Server, address, health string) error {
	log, registry := process.NewLogger("info", "json"), prometheus.NewRegistry()
	server := forward.NewServer(log, forward.NewMetrics(registry), forward.Limits{Connections: mostOfNode})
	accepting, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", address, err)
	}
	observed, err := (&net.ListenConfig{}).Listen(ctx, "tcp", health)
	if err != nil {
		return errors.Join(fmt.Errorf("listen at %s: %w", health, err), accepting.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	serving := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelError)}
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(observed) }()
	go func() {
		<-ctx.Done()
		_ = accepting.Close()
	}()
	log.Info("Starts", "address", address, "gateway", to.Gateway)
	err = server.Serve(context.WithoutCancel(ctx), accepting, to.Open)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainOfNode)
	defer cancel()
	server.Drain(limited, forward.Quiet)
	if failed := serving.Close(); failed != nil {
		return errors.Join(err, failed)
	}
	if failed := <-ended; !errors.Is(failed, http.ErrServerClosed) {
		return errors.Join(err, failed)
	}
	return err
}
