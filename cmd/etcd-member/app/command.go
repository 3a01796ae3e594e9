// Package app is the program etcd-member, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/etcd/member"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/program"
)

// version of the program.
var version = "dev"

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// Main runs the program with its command line, and exits if there is an error. linked is the version to report.
func Main(linked string) {
	version = linked
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program.Execute(ctx, newCommand())
}

func newCommand() *cobra.Command {
	var name string
	command := program.Program[*config.Member]{
		Name:  "etcd-member",
		Short: "Run one member of an etcd cluster",
		Long: `etcd-member decides how etcd starts, starts it, and reports its state in the Lease of the member, which etcd-operator reads.

If the member has data, etcd starts with it. Without data, the member joins the cluster if the Leases record that one was formed, after it
removed its previous membership. If no cluster was formed, the first member forms one. If the data of a formed cluster is lost, the member
does not replace the cluster with an empty one. It restores the backups if there are any. Otherwise it waits, and reports this in its Lease.

Environment:
  POD_NAME  the name of the member, unless --name is set`,
		Example: `  # in a Pod of the StatefulSet
  POD_NAME=etcd-main-0 etcd-member --config /var/etcd/config/member.yaml`,
		Version: version, Load: config.LoadMember,
		Run: func(ctx context.Context, settings *config.Member) error { return run(ctx, settings, name) },
	}.Command()
	command.Flags().StringVar(&name, "name", os.Getenv("POD_NAME"), "name of the member and of its Lease")
	command.AddCommand(backupCommands()...)
	return command
}

// run runs the member and serves its status until the context ends or etcd exits.
func run(ctx context.Context, settings *config.Member, name string) error {
	if name == "" {
		return errors.New("the name of the member is not known: set --name or the environment variable POD_NAME")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	access, err := restConfig(settings.Kubeconfig)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("member", name)
	m, err := member.New(settings, name, access, log, time.Now)
	if err != nil {
		return err
	}
	served := make(chan error, 2)
	for _, serve := range []func(context.Context) error{m.Serve, m.ServeBackups} {
		go func() {
			err := serve(ctx)
			served <- err
			if err != nil {
				cancel(err)
			}
		}()
	}
	err = m.Run(ctx)
	cancel(nil)
	return errors.Join(err, <-served, <-served)
}

// restConfig returns the connection to the API server that has the Leases.
func restConfig(path string) (*rest.Config, error) {
	access, err := rest.InClusterConfig()
	if path != "" {
		access, err = kubeconfig.Read(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the connection to the API server: %w", err)
	}
	access.UserAgent = "etcd-member/" + version
	return access, nil
}
