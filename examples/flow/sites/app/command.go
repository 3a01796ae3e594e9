// Package app is the program sites, apart from its function main.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	sites "github.com/trellis-k8s/trellis/examples/flow"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const usage = `Brings up sites, which are declared in ConfigMaps: an example of a flow. See docs/flows.md.

Usage:
  sites [flags]

Examples:
  sites --kubeconfig ~/.kube/config --namespace default

Flags:
`

type options struct {
	sites.Options
	kubeconfig, namespace, health, metrics, profiles string
	qps                                              float64
}

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// Main runs the example flow with its command line, and exits.
func Main() { os.Exit(runMain()) }

func runMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	opts, err := parseOptions(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = run(ctx, opts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sites:", err)
		return 1
	}
	return 0
}

func parseOptions(args []string, out io.Writer) (options, error) {
	opts := options{Options: sites.Options{Pacing: sites.DefaultPacing(), Clock: clock.RealClock{}}}
	flags := flag.NewFlagSet("sites", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster")
	flags.StringVar(&opts.namespace, "namespace", "", "the only namespace with sites (default: all)")
	flags.StringVar(&opts.Class, "class", "", "class of the resource-manager")
	flags.StringVar(&opts.Version, "version", "dev", "version of the program, which is that of the apps' image")
	flags.IntVar(&opts.Workers, "workers", 5, "number of sites that are looked at at a time")
	flags.IntVar(&opts.Pacing.Budget, "budget", opts.Pacing.Budget, "ManagedResources that may be rolling out at a time when only the version has changed")
	flags.DurationVar(&opts.Pacing.Retry, "retry", opts.Pacing.Retry, "time after which a site that waits for its rollout asks again")
	flags.StringVar(&opts.health, "health-address", "0", "`address` of /healthz and /readyz; 0 for none")
	flags.StringVar(&opts.metrics, "metrics-address", "0", "`address` of /metrics; 0 for none")
	flags.StringVar(&opts.profiles, "profile-address", "0", "`address` of /debug/pprof; 0 for none")
	flags.Float64Var(&opts.qps, "qps", 0, "requests per second; 0 for the default of client-go, -1 for no limit")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return opts, nil
}

// gcPercent has the heap grow by half of what lives in it, which is half as much as by Go's default: nearly all of it is what watches show,
// which lives long.
const gcPercent = 50

func run(ctx context.Context, opts options) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	config, err := clientcmd.BuildConfigFromFlags("", opts.kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.UserAgent = float32(opts.qps), "sites/"+opts.Version
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	managerOptions := ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: opts.metrics}, HealthProbeBindAddress: opts.health, PprofBindAddress: opts.profiles,
		Cache: cache.Options{ByObject: sites.CacheOptions(), DefaultTransform: cache.TransformStripManagedFields()}, GracefulShutdownTimeout: new(10 * time.Second),
	}
	if opts.namespace != "" {
		managerOptions.Cache.DefaultNamespaces = map[string]cache.Config{opts.namespace: {}}
	}
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	reconciler, err := sites.New(ctx, mgr, opts.Options)
	if err != nil {
		return err
	}
	if err := reconciler.AddToManager(mgr); err != nil {
		return fmt.Errorf("watch sites: %w", err)
	}
	return mgr.Start(ctx)
}
