// Package heartbeat renews the Lease with which gardenlet detects that an extension is alive and that its reported conditions are current.
package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// LeaseName is the name of the Lease in the namespace of the extension.
	LeaseName = "gardener-extension-heartbeat"
	// DefaultPeriod is the time between two renewals.
	DefaultPeriod = 30 * time.Second
	// retry is the delay after a failure.
	retry = 2 * time.Second
)

// Options are the options of a heartbeat.
type Options struct {
	// Name of the extension, which holds the Lease.
	Name string
	// Namespace of the extension.
	Namespace string
	// Period is the time between two renewals. It defaults to [DefaultPeriod].
	Period time.Duration
	// Clock defaults to the real clock if it is nil.
	Clock clock.Clock
}

// AddToManager makes the leader renew the Lease. The process needs permission to get, create and update Leases in its namespace.
func AddToManager(mgr manager.Manager, options Options) error {
	if options.Name == "" || options.Namespace == "" {
		return errors.New("the options of the heartbeat need a name and a namespace")
	}
	// The Lease is read once and later known from its own renewals. A cache would receive each renewal as an event.
	direct, err := client.New(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
	})
	if err != nil {
		return fmt.Errorf("create a client for the heartbeat: %w", err)
	}
	options.Period = cmp.Or(options.Period, DefaultPeriod)
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return mgr.Add(&heart{Options: options, client: direct})
}

// heart renews the Lease.
type heart struct {
	Options
	client client.Client
	// lease is the Lease that was last written, or nil if it is not known.
	lease *coordinationv1.Lease
}

// NeedLeaderElection returns true, because only the leader renews the Lease.
func (h *heart) NeedLeaderElection() bool { return true }

// Start renews the Lease until the context ends.
func (h *heart) Start(ctx context.Context) error {
	for {
		delay := h.Period
		if err := h.beat(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Could not renew the heartbeat", "again", retry.String())
			delay = min(retry, h.Period)
		}
		timer := h.Clock.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// beat renews the Lease once, and creates it if it does not exist.
func (h *heart) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.Period)
	defer cancel()
	lease := h.lease
	h.lease = nil
	create := false
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: LeaseName}}
		err := h.client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Lease %s/%s: %w", h.Namespace, LeaseName, err)
		}
		create = apierrors.IsNotFound(err)
	}
	lease.Spec.HolderIdentity = ptr.To(h.Name)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(h.Period / time.Second)) //nolint:gosec // a period of seconds or minutes
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(h.Clock.Now()))
	write := func() error { return h.client.Update(ctx, lease) }
	if create {
		write = func() error { return h.client.Create(ctx, lease) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("write Lease %s/%s: %w", h.Namespace, LeaseName, err)
	}
	h.lease = lease
	return nil
}
