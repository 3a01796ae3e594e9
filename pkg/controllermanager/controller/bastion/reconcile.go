package bastion

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// reconciler deletes Bastions.
type reconciler struct {
	client      client.Client
	live        client.Reader
	clock       clock.PassiveClock
	checkClock  controller.ClockCheck
	maxLifetime time.Duration
}

// Reconcile deletes a Bastion that must not exist any more, or comes back when it expires.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	now := r.clock.Now()
	_, decision, err := r.decide(ctx, r.client, request, now)
	if err != nil || decision.Delete == "" {
		return requeue.At(decision.Next, now), err
	}
	// A cache may lack a new Shoot or the last heartbeat.
	bastion, decision, err := r.decide(ctx, r.live, request, now)
	if err != nil || decision.Delete == "" {
		return requeue.At(decision.Next, now), err
	}
	if decision.ByTime {
		if err := r.checkClock(ctx, now); err != nil {
			return reconcile.Result{}, fmt.Errorf("delete Bastion %s, because %s: %w", request, decision.Delete, err)
		}
	}
	// With the resourceVersion, a heartbeat that comes in between keeps the Bastion.
	err = r.client.Delete(ctx, bastion, client.Preconditions{UID: &bastion.UID, ResourceVersion: &bastion.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete Bastion %s, because %s: %w", request, decision.Delete, err)
	}
	log.FromContext(ctx).Info("Deleted a Bastion", "reason", decision.Delete)
	return reconcile.Result{}, nil
}

// decide reads a Bastion and its Shoot, and decides. Without the Bastion, there is nothing to do.
func (r *reconciler) decide(
	ctx context.Context, reader client.Reader, request reconcile.Request, now time.Time,
) (*operationsv1alpha1.Bastion, Decision, error) {
	bastion := &operationsv1alpha1.Bastion{}
	if err := reader.Get(ctx, request.NamespacedName, bastion); err != nil {
		return nil, Decision{}, client.IgnoreNotFound(err)
	}
	shoot := &corev1beta1.Shoot{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}, shoot)
	switch {
	case apierrors.IsNotFound(err):
		shoot = nil
	case err != nil:
		return nil, Decision{}, fmt.Errorf("read the Shoot %s of Bastion %s: %w", bastion.Spec.ShootRef.Name, request, err)
	}
	return bastion, Decide(bastion, shoot, r.maxLifetime, now), nil
}
