package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/gardenlet/access"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenversion"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/networks"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/registration"
)

// NeedLeaderElection returns true, because only one replica may request credentials and write.
func (g *gardenlet) NeedLeaderElection() bool { return true }

// Start gets access to the garden, registers the Seed, and then adds the controllers to the manager. It retries while the
// garden or the seed does not respond. It returns errors that only users can correct, which ends the process.
func (g *gardenlet) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, g.manager.GetLogger().WithName("start"))
	g.gardenSynced.leads.Store(true)
	delays := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: 30 * time.Second}
	for {
		ready, err := g.prepare(ctx)
		if err == nil {
			return g.addControllers(ready) //nolint:contextcheck // the manager gives controllers their context
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the process ends
		}
		if errors.Is(err, networks.ErrMismatch) || errors.Is(err, gardenversion.ErrSkew) ||
			errors.Is(err, access.ErrNoAccess) || apierrors.IsInvalid(err) {
			return err
		}
		delay := delays.Step()
		log.FromContext(ctx).Error(err, "Could not start the controllers of the Seed; retrying", "delay", delay.String())
		select {
		case <-ctx.Done():
			return nil
		case <-g.clock.After(delay):
		}
	}
}

// gardenAccess is the connection of the controllers to the garden.
type gardenAccess struct {
	cluster.Cluster
	kube    kubernetes.Interface
	renewer *access.Renewer
}

// prepare gets access to the garden and registers the Seed there.
func (g *gardenlet) prepare(ctx context.Context) (*gardenAccess, error) {
	if err := networks.Check(ctx, g.seed, g.config.SeedConfig.Spec.Networks); err != nil {
		return nil, err
	}
	accessor := g.accessor()
	connection, err := accessor.Establish(ctx)
	if err != nil {
		return nil, fmt.Errorf("get access to the garden: %w", err)
	}
	gardenConfig := g.gardenConfig(connection)
	g.election.Guard(gardenConfig)
	garden, err := newGardenCluster(gardenConfig, newGardenScheme(), g.seedName)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	kube, err := kubernetes.NewForConfigAndClient(gardenConfig, garden.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	if err := gardenversion.Check(ctx, garden.GetAPIReader(), version); err != nil {
		return nil, err
	}
	if err := g.register(ctx, garden, kube); err != nil {
		return nil, err
	}
	return &gardenAccess{garden, kube, &access.Renewer{Garden: accessor, Connection: connection}}, nil
}

func (g *gardenlet) accessor() access.Garden {
	return access.Garden{SeedName: g.seedName, Config: g.config.GardenClientConnection, Seed: g.seed, Clock: g.clock}
}

func (g *gardenlet) gardenConfig(connection *access.Connection) *rest.Config {
	config := connection.Config()
	tune(config, &g.config.GardenClientConnection.ClientConnectionConfiguration)
	return config
}

// register creates or updates the Seed, and waits until the garden has its namespace.
func (g *gardenlet) register(ctx context.Context, garden cluster.Cluster, kube kubernetes.Interface) error {
	direct, err := newDirectClient(garden)
	if err != nil {
		return err
	}
	if _, err := registration.Register(ctx, direct, g.config.SeedConfig); err != nil {
		return err
	}
	return registration.AwaitNamespace(ctx, kube, g.seedName)
}

// gardenState reports whether the cache of the garden is filled.
type gardenState struct {
	// leads is set in the replica that is the leader.
	leads   atomic.Bool
	cluster atomic.Pointer[cluster.Cluster]
	// takeover is the result of the check of a replica that does not lead.
	takeover takeoverState
}

// Check returns an error until the cache is filled. A replica that does not lead has no cache: it is ready when it could take over.
func (s *gardenState) Check(request *http.Request) error {
	garden := s.cluster.Load()
	switch {
	case garden == nil && s.leads.Load():
		return errors.New("the gardenlet has no access to the garden yet, or its Seed is not registered: see the log")
	case garden == nil:
		return s.takeover.check()
	}
	ctx, cancel := context.WithTimeout(request.Context(), cacheProbeTimeout)
	defer cancel()
	if !(*garden).GetCache().WaitForCacheSync(ctx) {
		return errors.New("the cache of the garden is not filled yet")
	}
	return nil
}
