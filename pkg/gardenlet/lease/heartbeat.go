package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	fieldManager = "gardenlet"
	// Reason and message of the condition, which are Gardener's.
	reasonReady  = "GardenletReady"
	messageReady = "Gardenlet is posting ready status."
	// firstRetry and lastRetry are the shortest and longest delay of retries.
	firstRetry = time.Millisecond
	lastRetry  = 2 * time.Second
	// minTimeout is the minimum timeout of a heartbeat.
	minTimeout = 5 * time.Second
)

// Heartbeat renews the lease of a Seed and sets the Seed's condition GardenletReady.
type Heartbeat struct {
	SeedName string
	// Period is the time between two heartbeats.
	Period time.Duration
	// Seed is a client of the seed's API server.
	Seed rest.Interface
	// Garden reads the Seed from a cache and writes its status.
	Garden client.Client
	// Leases is a client of the garden for leases.
	Leases kubernetes.Interface
	Health *Health
	Clock  clock.Clock

	// lease is the lease that was last written.
	lease *coordinationv1.Lease
}

// NeedLeaderElection returns true, because only the leader renews the lease.
func (h *Heartbeat) NeedLeaderElection() bool { return true }

// Start renews the lease until the context ends.
func (h *Heartbeat) Start(ctx context.Context) error {
	backoff := newBackoff()
	for {
		err := h.beat(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the process ends
		}
		h.Health.record(err)
		delay := h.Period
		if err != nil {
			delay = backoff.Step()
			log.FromContext(ctx).WithName("seed-lease").Error(err, "Could not renew the lease of the Seed", "again", delay.String())
		} else {
			backoff = newBackoff()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.Clock.After(delay):
		}
	}
}

func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: firstRetry, Factor: 2, Steps: 20, Cap: lastRetry}
}

// beat renews the lease once.
func (h *Heartbeat) beat(ctx context.Context) error {
	timeout := max(h.Period, minTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %s", timeout))
	defer cancel()
	if err := h.Seed.Get().AbsPath("/healthz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("the API server of the seed is not healthy: %w", errors.Join(err, context.Cause(ctx)))
	}
	seed := &gardencorev1beta1.Seed{}
	if err := h.Garden.Get(ctx, client.ObjectKey{Name: h.SeedName}, seed); err != nil {
		return client.IgnoreNotFound(err) // a deleted Seed needs no lease
	}
	if err := h.renew(ctx, seed); err != nil {
		return fmt.Errorf("renew Lease %s/%s of the garden: %w", constants.SystemSeedLeaseNamespace, h.SeedName, err)
	}
	return h.setReady(ctx, seed)
}

// renew updates the lease that was last written. It only reads the lease if that fails.
func (h *Heartbeat) renew(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	leases := h.Leases.CoordinationV1().Leases(constants.SystemSeedLeaseNamespace)
	if h.lease != nil {
		updated, err := leases.Update(ctx, h.fill(h.lease, seed), metav1.UpdateOptions{FieldManager: fieldManager})
		if err == nil {
			h.lease = updated
			return nil
		}
		h.lease = nil
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	found, err := leases.Get(ctx, h.SeedName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		found = h.fill(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: h.SeedName}}, seed)
		h.lease, err = leases.Create(ctx, found, metav1.CreateOptions{FieldManager: fieldManager})
	case err == nil:
		h.lease, err = leases.Update(ctx, h.fill(found, seed), metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		h.lease = nil
	}
	return err
}

// fill returns a renewed copy of a lease.
func (h *Heartbeat) fill(lease *coordinationv1.Lease, seed *gardencorev1beta1.Seed) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Seed", Name: seed.Name, UID: seed.UID,
	}}
	lease.Spec.HolderIdentity = ptr.To(h.SeedName)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(h.Period / time.Second)) //nolint:gosec // the configuration has an int32
	lease.Spec.RenewTime = &metav1.MicroTime{Time: h.Clock.Now()}
	return lease
}

// setReady sets the condition if it differs.
func (h *Heartbeat) setReady(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	changed := seed.DeepCopy()
	if !ready(changed, h.Clock.Now()) {
		return nil
	}
	// A strategic merge patch retains conditions of other controllers.
	if err := h.Garden.Status().Patch(ctx, changed, client.StrategicMergeFrom(seed), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("set condition %s of Seed %s: %w", gardencorev1beta1.SeedGardenletReady, h.SeedName, err)
	}
	return nil
}

// ready sets the condition in a Seed, and reports whether it differed.
func ready(seed *gardencorev1beta1.Seed, now time.Time) bool {
	before := gardencorev1beta1.FindCondition(seed.Status.Conditions, gardencorev1beta1.SeedGardenletReady)
	wanted := gardencorev1beta1.KeepTimes(before, gardencorev1beta1.Condition{
		Type: gardencorev1beta1.SeedGardenletReady, Status: gardencorev1beta1.ConditionTrue, Reason: reasonReady, Message: messageReady,
	}, now)
	if before != nil && equality.Semantic.DeepEqual(*before, wanted) {
		return false
	}
	seed.Status.Conditions = gardencorev1beta1.SetCondition(seed.Status.Conditions, wanted)
	return true
}
