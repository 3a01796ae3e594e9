package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
	healthcontroller "github.com/trellis-k8s/trellis/pkg/health/controller"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	programmanager "github.com/trellis-k8s/trellis/pkg/program/manager"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// pruneDelay is how long an object that left one ManagedResource is kept so that another ManagedResource can take it
// over. It covers a manual "kubectl apply" of both, and the next request of a deployer.
const pruneDelay = 2 * time.Second

// gracefulShutdown is how long running reconciles may take to finish after a stop signal.
const gracefulShutdown = 5 * time.Second

// run starts all components that the configuration enables. It returns when the context ends or an error occurs.
func run(ctx context.Context, config *configv1alpha1.ResourceManagerConfiguration) error {
	log := newLogger(config)
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	sourceConfig, err := restConfig(&config.SourceClientConnection)
	if err != nil {
		return fmt.Errorf("source cluster: %w", err)
	}
	targetConfig, err := targetRestConfig(config)
	if err != nil {
		return fmt.Errorf("target cluster: %w", err)
	}
	setUp := newStartupRetry(clock.RealClock{}, log)
	sourceConfig.Wrap(setUp.wrap)
	targetConfig.Wrap(setUp.wrap)
	election, err := leaderfence.NewElection(&config.LeaderElection, sourceConfig, sourceConfig, targetConfig)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, sourceConfig, election, log)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, config, sourceConfig, targetConfig); err != nil {
		return err
	}
	setUp.end()
	log.Info("Starting resource-manager", "version", version,
		"source", sourceConfig.Host, "target", targetConfig.Host, "class", *config.Controllers.ResourceClass)
	return election.Start(ctx, mgr)
}

// newManager returns the manager of the source cluster, with its health checks.
func newManager(
	config *configv1alpha1.ResourceManagerConfiguration, sourceConfig *rest.Config, election *leaderfence.Election, log logr.Logger,
) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(resourcesv1alpha1.AddToScheme(scheme))

	mgr, err := manager.New(sourceConfig, election.Elect(manager.Options{
		Scheme: scheme,
		Logger: log,
		Cache:  cacheOptions(config),
		Controller: ctrlconfig.Controller{
			CacheSyncTimeout: config.Controllers.CacheSyncTimeout.Duration,
		},
		HealthProbeBindAddress:  address(config.Server.HealthProbes),
		Metrics:                 metricsserver.Options{BindAddress: address(config.Server.Metrics)},
		PprofBindAddress:        "0",
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
	}))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the source cluster: %w", err)
	}
	if err := addHealthChecks(mgr, sourceConfig); err != nil {
		return nil, err
	}
	return mgr, programmanager.AddProfiles(mgr, &config.Debugging)
}

// addControllers adds the controllers of ManagedResources and of their health, and all other enabled controllers.
func addControllers(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	sourceConfig, targetConfig *rest.Config,
) error {
	targetCluster, err := cluster.New(targetConfig, func(options *cluster.Options) {
		options.Scheme = mgr.GetScheme()
		options.Cache = targetCacheOptions(config)
	})
	if err != nil {
		return fmt.Errorf("set up the connection to the target cluster: %w", err)
	}
	if err := mgr.Add(targetCluster); err != nil {
		return fmt.Errorf("add the target cluster: %w", err)
	}
	objects, err := target.NewObjects(targetConfig, targetCluster.GetHTTPClient())
	if err != nil {
		return err
	}
	examiner, err := newExaminer(config)
	if err != nil {
		return err
	}
	identity, err := clusterIdentity(ctx, mgr.GetAPIReader(), *config.Controllers.ClusterID)
	if err != nil {
		return err
	}
	certificate, err := webhookCertificate(ctx, mgr, config, targetConfig)
	if err != nil {
		return err
	}
	view := live.NewView(live.Options{
		Objects: objects, Policy: policyOf(config), Examiner: examiner,
		ManagedBy:  *config.Controllers.ManagedResource.ManagedByLabelValue,
		Namespaces: config.TargetClientConnection.Namespaces, Clock: clock.RealClock{},
	})
	return errors.Join(
		addManagedResource(ctx, mgr, config, targetCluster, objects, view, identity),
		addHealth(mgr, config, objects, view, identity),
		addGarbageCollector(mgr, config, objects),
		addTokenRequestor(mgr, config, targetConfig, identity),
		addNodeControllers(ctx, mgr, config, targetCluster),
		addWebhooks(ctx, mgr, config, targetCluster, certificate),
		addUI(ctx, mgr, config, sourceConfig, targetConfig, certificate),
		addTokenInvalidator(ctx, mgr, config, targetCluster),
		addCSRApprover(mgr, config, targetCluster),
		addNetworkPolicies(ctx, mgr, config, targetCluster, objects),
		addIstioClusterConfiguration(mgr, config, targetCluster, objects),
	)
}

// newExaminer returns the health checks of objects. The error names the invalid checks of the configuration.
func newExaminer(config *configv1alpha1.ResourceManagerConfiguration) (*health.Examiner, error) {
	checks, err := expression.Compile(config.Controllers.Health.Checks)
	if err != nil {
		return nil, fmt.Errorf("controllers.health.checks of the configuration: %w", err)
	}
	return health.NewExaminer(health.OtherKinds(config.Controllers.Health.OtherKinds), checks), nil
}

// addHealth adds the controller of the health conditions.
func addHealth(mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, objects *target.Objects,
	view *live.View, identity string,
) error {
	settings := config.Controllers.Health
	return healthcontroller.NewReconciler(healthcontroller.Reconciler{
		Source: mgr.GetClient(), Live: view, Objects: objects,
		Recorder: newRecorder(mgr, "resource-manager"),
		Metrics:  healthcontroller.NewMetrics(metrics.Registry),
		Clock:    clock.RealClock{},
		Options: healthcontroller.Options{
			Class: *config.Controllers.ResourceClass, ClusterID: identity,
			Namespaces: config.SourceClientConnection.Namespaces,
			SyncPeriod: settings.SyncPeriod.Duration, ConcurrentSyncs: *settings.ConcurrentSyncs,
			ProgressingThreshold: ptr.Deref(settings.ProgressingThreshold, metav1.Duration{}).Duration,
		},
	}).AddToManager(mgr)
}

// addManagedResource adds the controller of ManagedResources.
func addManagedResource(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster, objects *target.Objects, view *live.View, identity string,
) error {
	settings := config.Controllers.ManagedResource
	limits := manifest.DefaultLimits()
	limits.Bytes = settings.MaxSecretSize.Value()
	reconciler := managedresource.NewReconciler(managedresource.Reconciler{
		Source:      mgr.GetClient(),
		Direct:      mgr.GetAPIReader(),
		Autoscalers: targetCluster.GetCache(),
		Objects:     objects,
		Live:        view,
		Engine: apply.NewEngine(objects, apply.Settings{
			Policy: policyOf(config), Strict: settings.FieldValidation == configv1alpha1.FieldValidationStrict,
		}, clock.RealClock{}),
		Recorder: newRecorder(mgr, "resource-manager"),
		Metrics:  managedresource.NewMetrics(metrics.Registry),
		Clock:    clock.RealClock{},
		Options: managedresource.Options{
			Class:           *config.Controllers.ResourceClass,
			Namespaces:      config.SourceClientConnection.Namespaces,
			ClusterID:       identity,
			ManagedBy:       *settings.ManagedByLabelValue,
			SyncPeriod:      settings.SyncPeriod.Duration,
			PruneDelay:      pruneDelay,
			CollectsGarbage: config.Controllers.GarbageCollector.Enabled,
			AlwaysUpdate:    *settings.AlwaysUpdate,
			ConcurrentSyncs: *settings.ConcurrentSyncs,
			Limits:          limits,

			NamespaceServiceAccounts: settings.NamespaceServiceAccounts,
		},
	})
	return reconciler.AddToManager(ctx, mgr, targetCluster.GetCache())
}

// policyOf returns the field owners whose additions to objects are kept.
func policyOf(config *configv1alpha1.ResourceManagerConfiguration) fieldowner.Policy {
	return fieldowner.DefaultPolicy(config.Controllers.ManagedResource.KeepFieldsOf...)
}

func address(server *configv1alpha1.Server) string {
	return net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port))
}

// addHealthChecks adds the checks of /healthz, which reports whether the source cluster responds, and of /readyz, which
// reports whether the caches of the controllers are filled.
func addHealthChecks(mgr manager.Manager, sourceConfig *rest.Config) error {
	probe, err := newSourceProbe(sourceConfig)
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.AddHealthzCheck("source-cluster", probe),
		mgr.AddReadyzCheck("informers-synced", func(request *http.Request) error {
			ctx, cancel := context.WithTimeout(request.Context(), time.Second)
			defer cancel()
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the caches of the source cluster are not filled yet")
			}
			return nil
		}),
	)
}
