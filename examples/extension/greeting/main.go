// Command greeting runs the example extension: docs/writing-extensions.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	greeting "github.com/trellis-k8s/trellis/examples/extension"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	namespace := flag.String("namespace", greeting.Name, "`namespace` of the extension")
	version := flag.String("release", "dev", "version of the program")
	probes := flag.String("health-bind-address", "0", "`address` of /healthz and /readyz; 0 for none")
	metrics := flag.String("metrics-bind-address", "0", "`address` of /metrics; 0 for none")
	elect := flag.Bool("leader-elect", false, "wait until no other replica is the leader")
	flag.Parse()
	err := run(ctx, *namespace, *version, *probes, *metrics, *elect)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "greeting:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace, version, probes, metrics string, elect bool) error {
	restConfig, err := config.GetConfig() // --kubeconfig, KUBECONFIG, or that of the Pod
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extension.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme, Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		HealthProbeBindAddress: probes, Metrics: server.Options{BindAddress: metrics},
		LeaderElection: elect, LeaderElectionID: greeting.Name, LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	if err := greeting.AddToManager(ctx, mgr, namespace, version); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
