package shoothibernation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Reasons of Events.
//
// +events:on=Shoot
const (
	reasonHibernated = "Hibernated"                // Normal: a schedule switched the cluster off
	reasonWokenUp    = "WokenUp"                   // Normal: a schedule switched the cluster on
	reasonFailed     = "HibernationScheduleFailed" // Warning: a schedule is invalid, or could not be executed
)

// action is the action of these Events.
const action = "ExecuteHibernationSchedule"

// reconciler executes the hibernation schedules of Shoots.
type reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	deadline time.Duration
}

// Reconcile executes the schedules of a Shoot, and comes back at the next time of a schedule.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := r.clock.Now()
	decision, err := Decide(shoot, r.deadline, now)
	if err != nil {
		r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, reasonFailed, action, "%s", err)
	}
	if decision.Hibernated != nil {
		if err := r.execute(ctx, shoot, decision); err != nil {
			return reconcile.Result{}, err
		}
	}
	if decision.Next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: decision.Next.Sub(now)}, nil
}

// execute switches a Shoot off or on, and records up to when its schedules are executed. The record is written even if
// nothing changes: otherwise, the same schedule would revert what a user changes by hand afterwards.
func (r *reconciler) execute(ctx context.Context, shoot *corev1beta1.Shoot, decision Decision) error {
	if shoot.Spec.Hibernation.Enabled == nil || *shoot.Spec.Hibernation.Enabled != *decision.Hibernated {
		if err := r.hibernate(ctx, shoot, *decision.Hibernated); err != nil {
			return err
		}
	}
	target, patch, err := change(shoot, map[string]any{
		"metadata": map[string]any{"uid": shoot.UID},
		"status":   map[string]any{"lastHibernationTriggerTime": metav1.NewTime(decision.Executed)},
	})
	if err != nil {
		return err
	}
	err = r.client.Status().Patch(ctx, target, patch, controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status.lastHibernationTriggerTime of Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}

// hibernate switches a Shoot off or on.
func (r *reconciler) hibernate(ctx context.Context, shoot *corev1beta1.Shoot, wanted bool) error {
	// With the resourceVersion, the API server refuses a decision from an outdated cache.
	target, patch, err := change(shoot, map[string]any{
		"metadata": map[string]any{"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion},
		"spec":     map[string]any{"hibernation": map[string]any{"enabled": wanted}},
	})
	if err != nil {
		return err
	}
	err = r.client.Patch(ctx, target, patch, controller.FieldManager)
	if err != nil {
		err = fmt.Errorf("set spec.hibernation.enabled of Shoot %s to %t at the time of its schedule: %w", client.ObjectKeyFromObject(shoot), wanted, err)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, reasonFailed, action, "%s", err)
		}
		return err
	}
	reason, note := reasonWokenUp, "A schedule switched the cluster on."
	if wanted {
		reason, note = reasonHibernated, "A schedule switched the cluster off."
	}
	r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, reason, action, "%s", note)
	return nil
}

// change returns an empty Shoot with the name of another one, and a merge patch for it.
func change(shoot *corev1beta1.Shoot, content map[string]any) (*corev1beta1.Shoot, client.Patch, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a change of Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	target := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	return target, client.RawPatch(types.MergePatchType, data), nil
}
