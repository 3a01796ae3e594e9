package app

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/evictionrequirements"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/lease"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/networkpolicy"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/seed"
	"github.com/trellis-k8s/trellis/pkg/shoot"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// cacheProbeTimeout is how long a health check waits for a cache.
const cacheProbeTimeout = time.Second

// addControllers starts the cache of the garden and adds all controllers to the manager, which is already running and
// starts them.
func (g *gardenlet) addControllers(garden *gardenAccess) error {
	if err := g.manager.Add(garden.Cluster); err != nil {
		return fmt.Errorf("start the cache of the garden: %w", err)
	}
	g.gardenSynced.cluster.Store(&garden.Cluster)
	garden.renewer.Recorder = newRecorder(garden)
	facts := seedfacts.New(g.manager.GetConfig(), g.manager.GetHTTPClient(), g.manager.GetAPIReader(), g.clock)
	return errors.Join(
		garden.renewer.AddToManager(g.manager),
		g.addHeartbeat(garden),
		g.addTokens(garden),
		g.addSeedControllers(garden, facts),
		g.addExtensions(garden, facts),
		g.addDeployers(garden, facts),
		seed.AddToManager(g.manager, garden, seed.Options{
			SeedName: g.seedName, Namespace: constants.GardenNamespace, Config: g.config, Identity: g.identity, Clock: g.clock, Version: version,
			CertificateExpires: garden.renewer.Connection.Expires, Facts: facts,
		}),
		shoot.AddToManager(g.manager, garden, shoot.Options{
			SeedName: g.seedName, Namespace: constants.GardenNamespace, Config: g.config, Identity: g.identity, Clock: g.clock, Version: version,
		}),
	)
}

// addSeedControllers adds the controllers that deploy and change objects in the seed, in addition to the flow of the
// Seed.
func (g *gardenlet) addSeedControllers(garden *gardenAccess, facts *seedfacts.Reader) error {
	objects, err := target.NewObjects(g.seedConfig, g.manager.GetHTTPClient())
	if err != nil {
		return err
	}
	policies := (&networkpolicy.Reconciler{
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects, Clock: g.clock,
		Options: networkpolicy.Options{
			Namespace: constants.GardenNamespace, Version: version, FieldManager: component,
			AdditionalSelectors: g.config.Controllers.NetworkPolicy.AdditionalNamespaceSelectors,
		},
	}).ForSeed(garden.GetCache(), g.seedName, facts)
	requirements := &evictionrequirements.Reconciler{
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects, Clock: g.clock, FieldManager: component, Facts: facts,
		ConcurrentSyncs: *g.config.Controllers.VPAEvictionRequirements.ConcurrentSyncs,
	}
	return errors.Join(
		facts.Watch(g.manager, objects.DynamicClient(), objects.MetadataClient(), objects), policies.AddToManager(g.manager),
		requirements.AddToManager(g.manager),
	)
}

// addHeartbeat adds the controller that renews the Lease of the Seed.
func (g *gardenlet) addHeartbeat(garden *gardenAccess) error {
	probe, err := discovery.NewDiscoveryClientForConfig(g.seedConfig)
	if err != nil {
		return fmt.Errorf("create a client to probe the seed: %w", err)
	}
	return g.manager.Add(&lease.Heartbeat{
		SeedName: g.seedName, Period: time.Duration(*g.config.Controllers.Seed.LeaseResyncSeconds) * time.Second,
		Seed: probe.RESTClient(), Garden: garden.GetClient(), Leases: garden.kube, Health: g.health, Clock: g.clock,
	})
}

// newDirectClient returns a client of the garden that reads without a cache.
func newDirectClient(garden cluster.Cluster) (client.Client, error) {
	c, err := client.New(garden.GetConfig(), client.Options{
		Scheme: garden.GetScheme(), HTTPClient: garden.GetHTTPClient(), Mapper: garden.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	return c, nil
}
