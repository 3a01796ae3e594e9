package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenversion"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/networks"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/registration"
)

// takeover checks in each replica whether it could take over from the leader: what ends or delays the start of a leader must be noticed before a
// rollout of the Deployment replaces the Pod that leads. Otherwise an upgrade to a version or a configuration that cannot start leaves the Seed
// without a gardenlet. It changes nothing, and sends no request once the check has passed.
type takeover struct{ *gardenlet }

// NeedLeaderElection returns false: replicas that do not lead are checked.
func (*takeover) NeedLeaderElection() bool { return false }

// Start repeats the check until it passes, or until this replica leads and starts.
func (t *takeover) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, t.manager.GetLogger().WithName("takeover"))
	delays := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: 30 * time.Second}
	for !t.gardenSynced.leads.Load() {
		err := t.check(ctx)
		t.gardenSynced.takeover.set(err)
		if err == nil {
			return nil
		}
		delay := delays.Step()
		log.FromContext(ctx).Error(err, "This replica could not take over; checking again", "delay", delay.String())
		select {
		case <-ctx.Done():
			return nil
		case <-t.clock.After(delay):
		}
	}
	return nil
}

// check executes the steps of prepare without their effects. Without credentials there was no gardenlet before, and the leader requests them.
func (t *takeover) check(ctx context.Context) error {
	if err := networks.Check(ctx, t.seed, t.config.SeedConfig.Spec.Networks); err != nil {
		return err
	}
	connection, err := t.accessor().Present(ctx)
	if err != nil || connection == nil {
		return err
	}
	garden, err := newGardenCluster(t.gardenConfig(connection), newGardenScheme(), t.seedName)
	if err != nil {
		return fmt.Errorf("set up the connection to the garden: %w", err)
	}
	if err := gardenversion.Check(ctx, garden.GetAPIReader(), version); err != nil {
		return err
	}
	direct, err := newDirectClient(garden)
	if err != nil {
		return err
	}
	_, err = registration.Register(ctx, client.NewDryRunClient(direct), t.config.SeedConfig)
	return err
}

// takeoverState is the result of the last check.
type takeoverState struct {
	passed atomic.Bool
	failed atomic.Pointer[error]
}

func (s *takeoverState) set(err error) {
	s.passed.Store(err == nil)
	s.failed.Store(&err)
}

// check returns an error until a check has passed.
func (s *takeoverState) check() error {
	switch failed := s.failed.Load(); {
	case s.passed.Load():
		return nil
	case failed == nil:
		return errors.New("this replica has not checked yet whether it could take over")
	default:
		return fmt.Errorf("this replica could not take over: %w", *failed)
	}
}
