package shootmaintenance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reasons of Events.
//
// +events:on=Shoot
const (
	reasonKubernetes = "KubernetesVersionMaintenance"   // Normal: maintenance updated a version of Kubernetes
	reasonImage      = "MachineImageVersionMaintenance" // Normal: maintenance updated the version of a machine image
	reasonFailed     = "MaintenanceFailed"              // Warning: maintenance could not do everything; the message names what is missing
)

// action is the action of these Events.
const action = "MaintainShoot"

// reconciler maintains Shoots.
type reconciler struct {
	client     client.Client
	live       client.Reader
	recorder   events.EventRecorder
	clock      clock.PassiveClock
	checkClock controller.ClockCheck
	settings   *v1alpha1.ShootMaintenance
}

// Reconcile maintains a Shoot if that is due, and comes back when it is due next.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot, now := &corev1beta1.Shoot{}, r.clock.Now()
	// The cache lacks most fields, and may be late.
	for _, reader := range []client.Reader{r.client, r.live} {
		if err := reader.Get(ctx, request.NamespacedName, shoot); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if due := IsDue(shoot, now); !due.Run {
			return requeue.At(due.Next, now), nil
		}
	}
	if err := r.maintain(ctx, shoot, now); err != nil {
		return reconcile.Result{}, fmt.Errorf("maintain Shoot %s: %w", request, err)
	}
	return requeue.At(IsDue(shoot, now).Next, now), nil
}

// maintain executes the maintenance of a Shoot, and records its result. If the API server refuses the changes, nothing is changed until
// the next maintenance. A conflict is an error: the changes follow from the state that was read.
func (r *reconciler) maintain(ctx context.Context, shoot *corev1beta1.Shoot, now time.Time) error {
	plan, err := r.plan(ctx, shoot, now)
	if err != nil {
		return err
	}
	if err := r.record(ctx, shoot, now, corev1beta1.LastOperationStateProcessing, plan.Description(), nil); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	changed := shoot.DeepCopy()
	changed.Spec, changed.Annotations = plan.Shoot.Spec, plan.Shoot.Annotations
	refused := r.client.Patch(ctx, changed.DeepCopy(), patch, controller.FieldManager, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(refused) || apierrors.IsForbidden(refused) || apierrors.IsBadRequest(refused):
		return r.giveUp(ctx, shoot, now, refused)
	case refused != nil:
		return fmt.Errorf("check the changes: %w", refused)
	}
	if err := r.client.Patch(ctx, changed, patch, controller.FieldManager); err != nil {
		return fmt.Errorf("change the specification and annotations: %w", err)
	}
	for reason, notes := range map[string][]string{reasonKubernetes: plan.Kubernetes, reasonImage: plan.Images} {
		for _, note := range notes {
			r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, reason, action, "%s", note)
		}
	}
	if len(plan.Failures) > 0 {
		r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, reasonFailed, action, "%s", strings.Join(plan.Failures, "; "))
		return r.record(ctx, changed, now, corev1beta1.LastOperationStateFailed, plan.Description(), plan.Failures)
	}
	return r.record(ctx, changed, now, corev1beta1.LastOperationStateSucceeded, plan.Description(), nil)
}

// plan returns what the maintenance changes. Forced updates wait if the clock of the process or a profile seems to be wrong.
func (r *reconciler) plan(ctx context.Context, shoot *corev1beta1.Shoot, now time.Time) (*Plan, error) {
	profile, err := r.profileOf(ctx, shoot)
	if err != nil {
		return nil, err
	}
	in := &Input{
		Shoot: shoot, Profile: profile, Now: now,
		RestartsControlPlane: ptr.Deref(r.settings.EnableShootControlPlaneRestarter, true),
		RestartsAddons:       ptr.Deref(r.settings.EnableShootCoreAddonRestarter, false),
	}
	plan := Decide(in)
	if plan.Forced {
		if err := r.checkClock(ctx, now); err != nil {
			return nil, err
		}
		if in.Hold, err = r.hold(ctx, shoot, profile, now); err != nil {
			return nil, err
		}
		plan = Decide(in)
	}
	if NeedsBinding(&shoot.Spec, &plan.Shoot.Spec) {
		if in.Binding, err = r.bindingFor(ctx, shoot); err != nil {
			return nil, err
		}
		plan = Decide(in)
	}
	return plan, nil
}

// giveUp removes the request for maintenance, and records why the API server refused the changes.
func (r *reconciler) giveUp(ctx context.Context, shoot *corev1beta1.Shoot, now time.Time, refused error) error {
	r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, reasonFailed, action, "the API server refused the changes: %s", refused)
	var errs []error
	if isRequested(shoot) {
		kept := shoot.DeepCopy()
		withoutRequest(kept)
		patch := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if err := r.client.Patch(ctx, kept, patch, controller.FieldManager); err != nil {
			errs = append(errs, fmt.Errorf("remove the operation %s: %w", constants.OperationMaintain, err))
		} else {
			shoot = kept
		}
	}
	err := r.record(ctx, shoot, now, corev1beta1.LastOperationStateFailed, "the API server refused the changes", []string{refused.Error()})
	return errors.Join(append(errs, err)...)
}

// record writes the status of the maintenance, and updates the given Shoot.
func (r *reconciler) record(
	ctx context.Context, shoot *corev1beta1.Shoot, now time.Time, state corev1beta1.LastOperationState, description string, failures []string,
) error {
	status := &corev1beta1.LastMaintenance{Description: description, TriggeredTime: metav1.NewTime(now), State: state}
	if len(failures) > 0 {
		status.FailureReason = ptr.To(strings.Join(failures, "; "))
	}
	before := shoot.DeepCopy()
	shoot.Status.LastMaintenance = status
	patch := client.MergeFrom(before)
	if state == corev1beta1.LastOperationStateProcessing {
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := client.IgnoreNotFound(r.client.Status().Patch(ctx, shoot, patch, controller.FieldManager)); err != nil {
		return fmt.Errorf("write status.lastMaintenance: %w", err)
	}
	return nil
}
