package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	schedulerv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/scheduler/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/process"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/scheduler"
	"github.com/trellis-k8s/trellis/pkg/scheduler/decision"
)

const (
	// component is the name of the process in Events and user agents.
	component = "gardener-scheduler"
	// gracefulShutdown is how long running reconciles may take to finish after a stop signal.
	gracefulShutdown = 5 * time.Second
	// cacheSyncTimeout is how long the start waits for the caches.
	cacheSyncTimeout = 2 * time.Minute
)

// run starts a scheduler. It returns when the context ends or an error occurs.
func run(ctx context.Context, c *schedulerv1alpha1.SchedulerConfiguration) error {
	log := process.NewLogger(c.LogLevel, c.LogFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	config, err := restConfig(c)
	if err != nil {
		return err
	}
	election, err := leaderfence.NewElection(c.LeaderElection, component, config, config)
	if err != nil {
		return err
	}
	mgr, err := newManager(c, config, election, log)
	if err != nil {
		return err
	}
	if err := errors.Join(addHealthChecks(mgr), addControllers(mgr, c)); err != nil {
		return err
	}
	log.Info("Starting scheduler", "version", version, "cluster", config.Host)
	return election.Start(ctx, mgr)
}

// addControllers adds the scheduler.
func addControllers(mgr manager.Manager, c *schedulerv1alpha1.SchedulerConfiguration) error {
	return scheduler.AddToManager(mgr, scheduler.Options{
		Recorder: eventlimit.New(mgr.GetEventRecorder(component), mgr.GetScheme(), clock.RealClock{}),
		Syncs:    c.Schedulers.Shoot.ConcurrentSyncs,
		Strategy: decision.Strategy(c.Schedulers.Shoot.Strategy),
	})
}

// restConfig returns the connection to the garden, from the kubeconfig file or, without one, from the Pod's service
// account.
func restConfig(c *schedulerv1alpha1.SchedulerConfiguration) (*rest.Config, error) {
	connection := c.ClientConnection
	config, err := process.RestConfig(connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("garden: %w", err)
	}
	config.UserAgent = component + "/" + version
	config.QPS, config.Burst = connection.QPS, int(connection.Burst)
	config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	restclient.Tune(config)
	return config, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	return scheme
}

// newManager returns the manager of the garden.
func newManager(
	c *schedulerv1alpha1.SchedulerConfiguration, config *rest.Config, election *leaderfence.Election, log logr.Logger,
) (manager.Manager, error) {
	mgr, err := manager.New(config, election.Elect(manager.Options{
		Scheme: newScheme(),
		Logger: log,
		Cache: cache.Options{
			NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(), ByObject: scheduler.CacheOptions(),
		},
		Controller:              ctrlconfig.Controller{CacheSyncTimeout: cacheSyncTimeout},
		HealthProbeBindAddress:  address(c.Server.HealthProbes),
		Metrics:                 metricsserver.Options{BindAddress: address(c.Server.Metrics)},
		PprofBindAddress:        "0",
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
	}))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	return mgr, nil
}

// addHealthChecks adds the checks of /healthz, on whose failure Kubernetes restarts the process, and of /readyz.
func addHealthChecks(mgr manager.Manager) error {
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("informer-sync", process.CacheSynced("garden", mgr.GetCache())),
	)
}

func address(server *schedulerv1alpha1.Server) string {
	return net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port))
}
