package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/process"
)

// gracefulShutdown is how long running reconciles may take to finish after a stop signal.
const gracefulShutdown = 5 * time.Second

// run starts the operator. It returns when the context ends, an error occurs, or another process becomes the leader.
func run(ctx context.Context, settings *config.Operator) error {
	log := process.NewLogger(settings.LogLevel, settings.LogFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	access, err := restConfig(settings)
	if err != nil {
		return err
	}
	election, err := leaderfence.NewElection(&settings.LeaderElection, "etcd-operator", access, access)
	if err != nil {
		return err
	}
	mgr, err := newManager(settings, access, election, log)
	if err != nil {
		return err
	}
	recorder := eventlimit.New(mgr.GetEventRecorder("etcd-operator"), mgr.GetScheme(), clock.RealClock{})
	reconciler, err := etcd.New(ctx, mgr, recorder, etcd.Options{
		Class: settings.Controllers.Etcd.ResourceClass, MemberImage: settings.MemberImage, Version: version,
		AutoReconcile: settings.Controllers.Etcd.EnableEtcdSpecAutoReconcile,
		Workers:       settings.Controllers.Etcd.ConcurrentSyncs, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	if err := reconciler.AddToManager(mgr); err != nil {
		return fmt.Errorf("watch Etcds: %w", err)
	}
	log.Info("Starting etcd-operator", "version", version, "cluster", access.Host, "class", settings.Controllers.Etcd.ResourceClass)
	return election.Start(ctx, mgr)
}

func newManager(settings *config.Operator, access *rest.Config, election *leaderfence.Election, log logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), druidv1alpha1.AddToScheme(scheme),
		resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := manager.New(access, election.Elect(manager.Options{
		Scheme: scheme, Logger: log,
		Cache:                   cache.Options{ByObject: etcd.CacheOptions(), DefaultTransform: cache.TransformStripManagedFields()},
		HealthProbeBindAddress:  address(settings.Server.HealthProbes),
		Metrics:                 metricsserver.Options{BindAddress: address(settings.Server.Metrics)},
		PprofBindAddress:        "0",
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
	}))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster: %w", err)
	}
	return mgr, errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("informers-synced", process.CacheSynced("cluster", mgr.GetCache())),
	)
}

// restConfig returns the connection to the cluster, from the kubeconfig file or, without one, from the Pod's service
// account.
func restConfig(settings *config.Operator) (*rest.Config, error) {
	connection := settings.ClientConnection
	access, err := process.RestConfig(connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the connection to the cluster (clientConnection.kubeconfig): %w", err)
	}
	access.UserAgent = "etcd-operator/" + version
	access.QPS, access.Burst = connection.QPS, connection.Burst
	return access, nil
}

func address(at config.Address) string {
	return net.JoinHostPort(at.BindAddress, strconv.Itoa(at.Port))
}
