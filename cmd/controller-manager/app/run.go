package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

	controllermanagerv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shoothibernation"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootretry"
	"github.com/trellis-k8s/trellis/pkg/controllers/controllerregistration"
	"github.com/trellis-k8s/trellis/pkg/controllers/gardenletrights"
	"github.com/trellis-k8s/trellis/pkg/controllers/seeddomains"
	"github.com/trellis-k8s/trellis/pkg/controllers/shootstatuslabel"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/process"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

const (
	// component is the name of the process in Events and user agents.
	component = "controller-manager"
	// gracefulShutdown is how long running reconciles may take to finish after a stop signal.
	gracefulShutdown = 5 * time.Second
)

// run starts a controller-manager. It returns when the context ends or an error occurs.
func run(ctx context.Context, c *controllermanagerv1alpha1.ControllerManagerConfiguration) error {
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
	if err := errors.Join(addHealthChecks(mgr), addControllers(ctx, mgr, c)); err != nil {
		return err
	}
	log.Info("Starting controller-manager", "version", version, "cluster", config.Host)
	return election.Start(ctx, mgr)
}

// addControllers adds all controllers.
func addControllers(ctx context.Context, mgr manager.Manager, c *controllermanagerv1alpha1.ControllerManagerConfiguration) error {
	recorder := eventlimit.New(mgr.GetEventRecorder(component), mgr.GetScheme(), clock.RealClock{})
	return errors.Join(
		controllerregistration.AddToManager(ctx, mgr, controllerregistration.Options{
			Recorder:          recorder,
			RegistrationSyncs: *c.Controllers.ControllerRegistration.ConcurrentSyncs,
			DeploymentSyncs:   *c.Controllers.ControllerDeployment.ConcurrentSyncs,
			ReadySyncs:        *c.Controllers.SeedExtensionsCheck.ConcurrentSyncs,
			ReadyThreshold:    c.Controllers.SeedExtensionsCheck.Threshold(corev1beta1.SeedExtensionsReady),
		}),
		shoothibernation.AddToManager(mgr, shoothibernation.Options{
			Recorder: recorder, Syncs: *c.Controllers.ShootHibernation.ConcurrentSyncs,
			Deadline: c.Controllers.ShootHibernation.TriggerDeadlineDuration.Duration,
		}),
		shootretry.AddToManager(mgr, *c.Controllers.ShootRetry.ConcurrentSyncs, shootretry.Periods{
			Retry: c.Controllers.ShootRetry.RetryPeriod.Duration, Jitter: c.Controllers.ShootRetry.RetryJitterPeriod.Duration,
		}),
		shootstatuslabel.AddToManager(mgr, *c.Controllers.ShootStatusLabel.ConcurrentSyncs),
		gardenletrights.AddToManager(mgr),
		seeddomains.AddToManager(mgr),
	)
}

// restConfig returns the connection to the garden, from the kubeconfig file or, without one, from the Pod's service
// account.
func restConfig(c *controllermanagerv1alpha1.ControllerManagerConfiguration) (*rest.Config, error) {
	connection := c.GardenClientConnection
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
	c *controllermanagerv1alpha1.ControllerManagerConfiguration, config *rest.Config, election *leaderfence.Election, log logr.Logger,
) (manager.Manager, error) {
	kinds, err := controllerregistration.CacheOptions()
	if err != nil {
		return nil, err
	}
	maps.Copy(kinds, gardenletrights.CacheOptions())
	mgr, err := manager.New(config, election.Elect(manager.Options{
		Scheme: newScheme(),
		Logger: log,
		Cache: cache.Options{
			NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(), ByObject: kinds,
		},
		Controller:              ctrlconfig.Controller{CacheSyncTimeout: c.Controllers.CacheSyncTimeout.Duration},
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

func address(server *controllermanagerv1alpha1.Server) string {
	return net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port))
}
