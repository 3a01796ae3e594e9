package heartbeat

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// TestBeat checks that the Lease is created, renewed with one request, taken over, and created again after it was deleted
// manually.
func TestBeat(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	requests := 0
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			requests++
			return c.Get(ctx, key, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			requests++
			return c.Update(ctx, object, options...)
		},
	})
	clock := testingclock.NewFakeClock(now)
	h := &heart{Options: Options{Name: "provider-local", Namespace: "extension-provider-local", Period: DefaultPeriod, Clock: clock}, client: c}
	beats := func() {
		t.Helper()
		if err := h.beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := &coordinationv1.Lease{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: LeaseName}, lease); err != nil {
			t.Fatal(err)
		}
		if *lease.Spec.HolderIdentity != h.Name || !lease.Spec.RenewTime.Time.Equal(clock.Now()) || *lease.Spec.LeaseDurationSeconds != 30 {
			t.Errorf("the Lease is %+v", lease.Spec)
		}
	}
	beats()
	clock.Step(DefaultPeriod)
	requests = 0
	beats()
	if requests != 2 { // the renewal, and the read of this test
		t.Errorf("%d requests, want 2", requests)
	}
	(&heart{Options: h.Options, client: c}).beatOnce(t)
	if err := h.beat(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("for a Lease that another process has renewed: %v", err)
	}
	beats()
	if err := c.Delete(t.Context(), h.lease.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := h.beat(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("for a deleted Lease: %v", err)
	}
	beats()
}

func (h *heart) beatOnce(t *testing.T) {
	t.Helper()
	if err := h.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
}
