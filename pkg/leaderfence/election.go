package leaderfence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// minElectionTimeout is the minimum timeout of leader election requests.
const minElectionTimeout = time.Second

// Election is the leader election of one process. It is nil if leader election is disabled.
type Election struct {
	settings *componentbaseconfigv1alpha1.LeaderElectionConfiguration
	fence    *Fence
	lock     resourcelock.Interface
}

// NewElection prepares leader election in a cluster, as controller-runtime would, but without Events: the Lease and the log have what they
// say, and a restart writes nothing else. It returns nil if the settings disable leader election. The guarded connections refuse write
// requests when this process no longer holds the leader lease.
func NewElection(
	settings *componentbaseconfigv1alpha1.LeaderElectionConfiguration, leases *rest.Config, guarded ...*rest.Config,
) (*Election, error) {
	if !ptr.Deref(settings.LeaderElect, false) {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: read the name of this host: %w", err)
	}
	// A single hanging request must not cost the lease.
	leaseConfig := rest.AddUserAgent(rest.CopyConfig(leases), "leader-election")
	leaseConfig.Timeout = max(settings.RenewDeadline.Duration/2, minElectionTimeout)
	client, err := kubernetes.NewForConfig(leaseConfig)
	if err != nil {
		return nil, fmt.Errorf("leader election: set up the connection to the cluster with the lease: %w", err)
	}
	e := &Election{settings: settings, fence: New(settings.RenewDeadline.Duration, clock.RealClock{})}
	lock, err := resourcelock.New(settings.ResourceLock, settings.ResourceNamespace, settings.ResourceName,
		client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e.lock = e.fence.Lock(lock)
	for _, config := range guarded {
		e.Guard(config)
	}
	return e, nil
}

// Guard makes a connection refuse write requests when this process no longer holds the leader lease.
func (e *Election) Guard(config *rest.Config) {
	if e != nil {
		config.Wrap(e.fence.Guard)
	}
}

// Elect adds the settings of leader election to the options of a manager.
func (e *Election) Elect(options manager.Options) manager.Options {
	if e == nil {
		return options
	}
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
	options.LeaderElectionID = e.settings.ResourceName // used for metrics only; the lock has the name already
	options.LeaderElectionResourceLockInterface = e.lock
	options.LeaseDuration, options.RenewDeadline = &e.settings.LeaseDuration.Duration, &e.settings.RenewDeadline.Duration
	options.RetryPeriod = &e.settings.RetryPeriod.Duration
	return options
}

// Start runs a manager until the context ends, something fails, or another process holds the lease.
func (e *Election) Start(ctx context.Context, mgr manager.Manager) error {
	if e == nil {
		return mgr.Start(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-e.fence.Lost():
			cancel(ErrNotLeader)
		case <-ctx.Done():
		}
	}()
	err := mgr.Start(ctx)
	if errors.Is(context.Cause(ctx), ErrNotLeader) {
		return fmt.Errorf("leader election: %w: another process holds the lease", ErrNotLeader)
	}
	return err
}
