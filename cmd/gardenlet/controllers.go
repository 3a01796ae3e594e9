package main

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/trellis-k8s/trellis/pkg/gardenlet/lease"
)

// cacheProbeTimeout is how long a health check waits for a cache.
const cacheProbeTimeout = time.Second

// addControllers starts the cache of the garden and adds all controllers to the manager, which runs already and starts them.
func (g *gardenlet) addControllers(garden *gardenAccess) error {
	if err := g.manager.Add(garden.Cluster); err != nil {
		return fmt.Errorf("start the cache of the garden: %w", err)
	}
	g.gardenSynced.cluster.Store(&garden.Cluster)
	garden.renewer.Recorder = newRecorder(garden)
	return errors.Join(
		garden.renewer.AddToManager(g.manager),
		g.addHeartbeat(garden),
		// seed.AddToManager(g.manager, garden, seed.Options{…}) goes here.
	)
}

// addHeartbeat adds what renews the lease of the Seed.
func (g *gardenlet) addHeartbeat(garden *gardenAccess) error {
	seed, err := discovery.NewDiscoveryClientForConfig(g.seedConfig)
	if err != nil {
		return fmt.Errorf("create a client to probe the seed: %w", err)
	}
	return g.manager.Add(&lease.Heartbeat{
		SeedName: g.seedName, Period: time.Duration(*g.config.Controllers.Seed.LeaseResyncSeconds) * time.Second,
		Seed: seed.RESTClient(), Garden: garden.GetClient(), Leases: garden.kube, Health: g.health, Clock: g.clock,
	})
}

// newDirectClient returns a client of the garden that reads without a cache.
func newDirectClient(garden cluster.Cluster) (client.Client, error) {
	c, err := client.New(garden.GetConfig(), client.Options{Scheme: garden.GetScheme(), HTTPClient: garden.GetHTTPClient(), Mapper: garden.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	return c, nil
}
