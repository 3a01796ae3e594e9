// Package app is the program tunnel, apart from its function main.
package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trellis-k8s/trellis/pkg/program"
	"github.com/trellis-k8s/trellis/pkg/tunnel"
)

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// Main runs the program with its command line, and exits if there is an error. linked is the version to report.
func Main(linked string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program.Execute(ctx, newCommand(linked))
}

// shared are the flags of both ends.
type shared struct {
	files  tunnel.Files
	health string
	log    string
}

func (s *shared) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.files.Certificate, "tls-cert-file", "", "path of the certificate of this program")
	flags.StringVar(&s.files.Key, "tls-private-key-file", "", "path of its key")
	flags.StringVar(&s.files.Authorities, "ca-file", "", "path of the bundle of authorities of the other end")
	flags.StringVar(&s.health, "health-address", ":8080", "address at which health and metrics are served, without TLS")
	flags.StringVar(&s.log, "log-level", "info", "debug, info or error")
}

// check returns an error if a required flag is missing.
func (s *shared) check() error {
	for flag, value := range map[string]string{
		"tls-cert-file": s.files.Certificate, "tls-private-key-file": s.files.Key, "ca-file": s.files.Authorities,
	} {
		if value == "" {
			return errors.New("--" + flag + " is missing: set it to the path of a file")
		}
	}
	return nil
}

func (s *shared) logger(to io.Writer) logr.Logger {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "error": slog.LevelError}[s.log]
	return logr.FromSlogHandler(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level}))
}

func newCommand(version string) *cobra.Command {
	root := &cobra.Command{
		Use: "tunnel", Short: "Connect the API server of a Shoot to its nodes, Pods and Services", Args: cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		Long: `tunnel is both ends of the tunnel through which the API server of a Shoot reaches nodes, Pods and Services that it has no route to.
The server runs beside the API server, the agent in the cluster. The agent opens the connection, so that nothing needs to reach the nodes.
Neither needs privileges.`,
	}
	printed := program.VersionFlag(root, version)
	root.RunE = func(command *cobra.Command, _ []string) error {
		if printed() {
			return nil
		}
		return command.Help()
	}
	root.AddCommand(serverCommand(), agentCommand())
	return root
}

func serverCommand() *cobra.Command {
	o := serverOptions{}
	command := &cobra.Command{
		Use: "server", Short: "Run the end beside the API server", Args: cobra.NoArgs,
		Long: `server accepts agents at one address, and requests of API servers with the method CONNECT at the other one, both with TLS and client
certificates. It passes each connection of an API server on to an agent. It is ready while an agent is connected.`,
		Example: "  tunnel server --tls-cert-file=tls.crt --tls-private-key-file=tls.key --ca-file=ca.crt --agent-name=vpn-shoot-client " +
			"--client-name=kube-apiserver-http-proxy-client",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return runServer(command.Context(), o, command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	o.add(flags)
	flags.StringVar(&o.agents, "agents-address", ":1194", "address at which agents are accepted")
	flags.StringVar(&o.clients, "clients-address", ":9443", "address at which requests of API servers are accepted")
	flags.StringVar(&o.agentName, "agent-name", "", "common name in the certificates of agents")
	flags.StringVar(&o.clientName, "client-name", "", "common name in the certificate of API servers")
	flags.DurationVar(&o.drain, "shutdown-delay", 10*time.Second, "how long the server serves after the signal to end; it is not ready meanwhile")
	return command
}

func agentCommand() *cobra.Command {
	o, servers := agentOptions{}, map[string]string{}
	command := &cobra.Command{
		Use: "agent", Short: "Run the end in the cluster", Args: cobra.NoArgs,
		Long: `agent keeps a connection to each server and opens the connections that they ask for. It is ready while a server is connected. It
refuses to connect to its own addresses and to those of the local link.`,
		Example: "  tunnel agent --tls-cert-file=tls.crt --tls-private-key-file=tls.key --ca-file=ca.crt " +
			"--server=vpn-seed-server-0.shoot--dev--one.svc.cluster.local=api.one.dev.internal.example.org:443",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(servers)) {
				o.servers = append(o.servers, tunnel.Endpoint{Name: name, Address: servers[name]})
			}
			return runAgent(command.Context(), o, command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	o.add(flags)
	flags.StringToStringVar(&servers, "server", nil,
		"NAME=HOST:PORT of a server: the name in its certificate, and where it is reached; may be repeated")
	flags.DurationVar(&o.drain, "drain-timeout", 20*time.Second, "how long connections may last after the signal to end")
	return command
}
