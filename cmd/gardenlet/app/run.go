package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/lease"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/process"
)

// gracefulShutdown is how long running reconciles may take to finish after a stop signal.
const gracefulShutdown = 5 * time.Second

// run starts a gardenlet. It returns when the context ends or an error occurs.
func run(ctx context.Context, config *gardenletv1alpha1.GardenletConfiguration) error {
	log := process.NewLogger(config.LogLevel, config.LogFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	seedConfig, err := seedRestConfig(&config.SeedClientConnection.ClientConnectionConfiguration)
	if err != nil {
		return err
	}
	election, err := leaderfence.NewElection(config.LeaderElection, component, seedConfig, seedConfig)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, seedConfig, election, log)
	if err != nil {
		return err
	}
	g, err := newGardenlet(config, mgr, seedConfig, election)
	if err != nil {
		return err
	}
	if err := errors.Join(g.addHealthChecks(), mgr.Add(g)); err != nil {
		return err
	}
	log.Info("Starting gardenlet", "version", version, "seed", g.seedName, "cluster", seedConfig.Host)
	return election.Start(ctx, mgr)
}

// newManager returns the manager of the seed.
func newManager(
	config *gardenletv1alpha1.GardenletConfiguration, seedConfig *rest.Config, election *leaderfence.Election, log logr.Logger,
) (manager.Manager, error) {
	mgr, err := manager.New(seedConfig, election.Elect(manager.Options{
		Scheme: newSeedScheme(),
		Logger: log,
		Cache:  seedCacheOptions(),
		Controller: ctrlconfig.Controller{
			CacheSyncTimeout: config.Controllers.CacheSyncTimeout.Duration,
		},
		HealthProbeBindAddress:  address(config.Server.HealthProbes),
		Metrics:                 metricsserver.Options{BindAddress: address(config.Server.Metrics)},
		PprofBindAddress:        "0",
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
	}))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the seed: %w", err)
	}
	return mgr, nil
}

// gardenlet runs in the leader. It gets access to the garden, and then adds the controllers to the manager.
type gardenlet struct {
	config   *gardenletv1alpha1.GardenletConfiguration
	seedName string
	identity *gardencorev1beta1.Gardener
	manager  manager.Manager
	// seed reads from and writes to the seed without a cache.
	seed       client.Client
	seedConfig *rest.Config
	election   *leaderfence.Election
	health     *lease.Health
	clock      clock.Clock
	// gardenSynced reports whether the cache of the garden is filled.
	gardenSynced gardenState
}

func newGardenlet(
	config *gardenletv1alpha1.GardenletConfiguration, mgr manager.Manager, seedConfig *rest.Config, election *leaderfence.Election,
) (*gardenlet, error) {
	seed, err := client.New(seedConfig, client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the seed: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of this host: %w", err)
	}
	period := time.Duration(*config.Controllers.Seed.LeaseResyncSeconds) * time.Second
	return &gardenlet{
		config: config, seedName: config.SeedConfig.Metadata.Name, manager: mgr, seed: seed, seedConfig: seedConfig, election: election,
		identity: &gardencorev1beta1.Gardener{ID: host, Name: component, Version: version}, clock: clock.RealClock{},
		health: lease.NewHealth(period*time.Duration(*config.Controllers.Seed.LeaseResyncMissThreshold), clock.RealClock{}),
	}, nil
}

// addHealthChecks adds the checks of /healthz, on whose failure Kubernetes restarts a gardenlet, and of /readyz.
func (g *gardenlet) addHealthChecks() error {
	return errors.Join(
		g.manager.AddHealthzCheck("ping", healthz.Ping),
		g.manager.AddHealthzCheck("periodic-health", g.health.Check),
		g.manager.AddReadyzCheck("runtime-informer-sync", process.CacheSynced("seed", g.manager.GetCache())),
		g.manager.AddReadyzCheck("garden-informer-sync", g.gardenSynced.Check),
	)
}
