package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
)

// minElectionTimeout is the least that a request of leader election may take.
const minElectionTimeout = time.Second

// election is the part in leader election of a resource-manager. It is nil if leaders are not elected.
type election struct {
	fence  *leaderfence.Fence
	lock   resourcelock.Interface
	events electionEvents
}

// newElection prepares leader election in the source cluster, as controller-runtime would. From then on the connections to both
// clusters refuse to write when this process no longer holds the leader lease.
func newElection(config *configv1alpha1.ResourceManagerConfiguration, sourceConfig, targetConfig *rest.Config) (*election, error) {
	settings := config.LeaderElection
	if !ptr.Deref(settings.LeaderElect, false) {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: read the name of this host: %w", err)
	}
	// One request that hangs must not cost the lease.
	leaseConfig := rest.AddUserAgent(rest.CopyConfig(sourceConfig), "leader-election")
	leaseConfig.Timeout = max(settings.RenewDeadline.Duration/2, minElectionTimeout)
	client, err := kubernetes.NewForConfig(leaseConfig)
	if err != nil {
		return nil, fmt.Errorf("leader election: set up the connection to the source cluster: %w", err)
	}
	e := &election{fence: leaderfence.New(settings.RenewDeadline.Duration, clock.RealClock{})}
	lock, err := resourcelock.New(settings.ResourceLock, settings.ResourceNamespace, settings.ResourceName, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID()), EventRecorder: &e.events})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e.lock = e.fence.Lock(lock)
	for _, guarded := range []*rest.Config{sourceConfig, targetConfig} {
		guarded.Wrap(e.fence.Guard)
	}
	return e, nil
}

// resourceLock is what the manager elects leaders with, nil if it does not.
func (e *election) resourceLock() resourcelock.Interface {
	if e == nil {
		return nil
	}
	return e.lock
}

// start runs a manager until the context ends, something fails, or the lease is in other hands.
func (e *election) start(ctx context.Context, mgr manager.Manager) error {
	if e == nil {
		return mgr.Start(ctx)
	}
	e.events.manager.Store(&mgr)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-e.fence.Lost():
			cancel(leaderfence.ErrNotLeader)
		case <-ctx.Done():
		}
	}()
	err := mgr.Start(ctx)
	if errors.Is(context.Cause(ctx), leaderfence.ErrNotLeader) {
		return fmt.Errorf("leader election: %w: another process holds the lease", leaderfence.ErrNotLeader)
	}
	return err
}

// electionEvents are the Events on the lease. There is a manager that writes them only after there is a lock.
type electionEvents struct {
	manager atomic.Pointer[manager.Manager]
}

// Eventf writes an Event.
func (e *electionEvents) Eventf(object runtime.Object, eventType, reason, message string, arguments ...any) {
	if mgr := e.manager.Load(); mgr != nil {
		recorder := (*mgr).GetEventRecorderFor("resource-manager") //nolint:staticcheck // what leader election takes
		recorder.Eventf(object, eventType, reason, message, arguments...)
	}
}
