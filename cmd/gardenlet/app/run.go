package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	gardenletconfig "github.com/trellis-k8s/trellis/pkg/gardenlet/config"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/lease"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	programmanager "github.com/trellis-k8s/trellis/pkg/program/manager"
)

// run starts a gardenlet. It returns when the context ends or an error occurs.
func run(ctx context.Context, config *gardenletv1alpha1.GardenletConfiguration) error {
	seedConfig, err := seedRestConfig(&config.SeedClientConnection.ClientConnectionConfiguration)
	if err != nil {
		return err
	}
	mgr, err := programmanager.New(programmanager.Options{
		Name: component, Version: version, LogLevel: config.LogLevel, LogFormat: config.LogFormat,
		Cluster: "seed", Config: seedConfig, Election: config.LeaderElection, Scheme: newSeedScheme(), Cache: seedCacheOptions(),
		CacheSyncTimeout: config.Controllers.CacheSyncTimeout.Duration,
		Health:           address(config.Server.HealthProbes), Metrics: address(config.Server.Metrics), Debugging: config.Debugging,
		InformersCheck: "runtime-informer-sync",
	})
	if err != nil {
		return err
	}
	g, err := newGardenlet(config, mgr, seedConfig, mgr.Election)
	if err != nil {
		return err
	}
	if err := errors.Join(g.addHealthChecks(), mgr.Add(&takeover{g}), mgr.Add(g)); err != nil {
		return err
	}
	mgr.Log.Info("This gardenlet is responsible for one Seed", "seed", g.seedName)
	unused, err := gardenletconfig.Inactive(config)
	if err != nil {
		return err
	}
	if len(unused) > 0 {
		mgr.Log.Info("Fields of the configuration have no effect: remove them, or see docs/gardenlet.md", "fields", unused)
	}
	return mgr.Start(ctx)
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
		g.manager.AddHealthzCheck("periodic-health", g.health.Check),
		g.manager.AddReadyzCheck("garden-informer-sync", g.gardenSynced.Check),
	)
}
