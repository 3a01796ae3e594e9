// Package manager builds what all programs with controllers share: their log, their connection, their health checks and metrics, and
// their leader election with its fence. It is apart from package program, because programs without controllers do not link it.
package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-k8s/trellis/pkg/eventlimit"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/process"
	"github.com/trellis-k8s/trellis/pkg/restclient"
)

// gracefulShutdown is how long running reconciles may take to finish after a stop signal.
const gracefulShutdown = 5 * time.Second

// Options are the options of a program's manager.
type Options struct {
	// Name of the program in logs, Events and user agents. Version of the program.
	Name, Version string
	// LogLevel and LogFormat are those of the configuration.
	LogLevel, LogFormat string
	// Cluster names the cluster in messages, for example garden.
	Cluster string
	// Config is the connection to the cluster, for example from Connect. It is guarded by the fence.
	Config *rest.Config
	// Election decides which replica works. Its Lease is in the same cluster.
	Election *componentbaseconfigv1alpha1.LeaderElectionConfiguration
	Scheme   *runtime.Scheme
	Cache    cache.Options
	// CacheSyncTimeout is how long the start waits for the caches; 0 for the default of controller-runtime.
	CacheSyncTimeout time.Duration
	// Health and Metrics are the addresses to listen on, for example from Address.
	Health, Metrics string
	// Debugging serves Go's profiles on the metrics port if it enables them; nil for none.
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration
	// InformersCheck is the name of the check of the caches in /readyz. Default: informer-sync.
	InformersCheck string
}

// Manager is the manager of a program.
type Manager struct {
	manager.Manager

	// Log is the log of the program.
	Log logr.Logger
	// Election is the election of the leader. It guards further connections. It is nil if it is disabled.
	Election *leaderfence.Election
	// Recorder writes Events, limited in number.
	Recorder events.EventRecorder

	options Options
}

// New returns the manager of a program. It sets the logger of the process, and adds the checks of /healthz, on whose failure Kubernetes
// restarts the process, and of /readyz.
func New(o Options) (*Manager, error) {
	log := process.NewLogger(o.LogLevel, o.LogFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	election, err := leaderfence.NewElection(o.Election, o.Config, o.Config)
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(o.Config, election.Elect(manager.Options{
		Scheme: o.Scheme, Logger: log, Cache: o.Cache,
		Controller:              ctrlconfig.Controller{CacheSyncTimeout: o.CacheSyncTimeout},
		HealthProbeBindAddress:  o.Health,
		Metrics:                 metricsserver.Options{BindAddress: o.Metrics},
		PprofBindAddress:        "0",
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
	}))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the %s: %w", o.Cluster, err)
	}
	check := o.InformersCheck
	if check == "" {
		check = "informer-sync"
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck(check, process.CacheSynced(o.Cluster, mgr.GetCache())),
		AddProfiles(mgr, o.Debugging),
	); err != nil {
		return nil, fmt.Errorf("add the health checks and profiles: %w", err)
	}
	recorder := eventlimit.New(mgr.GetEventRecorder(o.Name), mgr.GetScheme(), clock.RealClock{})
	return &Manager{Manager: mgr, Log: log, Election: election, Recorder: recorder, options: o}, nil
}

// Start runs the program until the context ends, something fails, or another process becomes the leader.
func (m *Manager) Start(ctx context.Context) error {
	m.Log.Info("Starting "+m.options.Name, "version", m.options.Version, "cluster", m.options.Config.Host)
	return m.Election.Start(ctx, m.Manager)
}

// Connect returns a connection from a kubeconfig file or, without one, from the Pod's ServiceAccount. cluster names it in errors.
func Connect(cluster, userAgent string, connection componentbaseconfigv1alpha1.ClientConnectionConfiguration) (*rest.Config, error) {
	config, err := process.RestConfig(connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cluster, err)
	}
	config.UserAgent = userAgent
	config.QPS, config.Burst = connection.QPS, int(connection.Burst)
	config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	restclient.Tune(config)
	return config, nil
}

// Address returns an address to listen on.
func Address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
