package extension

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/finalizer"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extensionstatus"
)

// reconciler installs Extensions.
type reconciler struct {
	client    client.Client
	live      client.Reader
	namespace string
	emitter   *flow.Emitter
	holder    finalizer.Holder
	clock     clock.PassiveClock
	pull      PullFunc
}

// Reconcile installs one Extension, or removes it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	extension := &operatorv1alpha1.Extension{}
	if err := r.client.Get(ctx, request.NamespacedName, extension); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	gardens := &operatorv1alpha1.GardenList{}
	if err := r.client.List(ctx, gardens); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the Gardens: %w", err)
	}
	var garden *operatorv1alpha1.Garden
	if len(gardens.Items) > 0 {
		garden = &gardens.Items[0]
	}
	held := controllerutil.ContainsFinalizer(extension, constants.FinalizerOperator)
	switch {
	case garden == nil && !held, extension.DeletionTimestamp != nil && !held:
		return reconcile.Result{}, r.report(ctx, extension, finding{status: corev1beta1.ConditionFalse, reason: reasonNoGarden, message: messageNoGarden})
	case !held:
		if err := r.holder.Add(ctx, extension, constants.FinalizerOperator); err != nil {
			return reconcile.Result{}, err
		}
	}
	in, err := r.observe(ctx, extension, garden)
	if err != nil {
		return reconcile.Result{}, r.failed(ctx, in, err)
	}
	plan, err := in.Plan(ctx)
	if err != nil {
		return reconcile.Result{}, r.failed(ctx, in, err)
	}
	result, err := r.emitter.Emit(ctx, ownerOf(extension), plan)
	if err != nil {
		return reconcile.Result{}, r.failed(ctx, in, err)
	}
	if in.Deleting {
		return reconcile.Result{}, r.finish(ctx, in, result)
	}
	var again time.Duration
	if next := result.Plan.NextAt(r.clock.Now()); !next.IsZero() {
		again = max(next.Sub(r.clock.Now()), time.Millisecond)
	}
	return reconcile.Result{RequeueAfter: again}, r.report(ctx, extension, in.finding(result))
}

// finish removes the finalizer once nothing is left.
func (r *reconciler) finish(ctx context.Context, in *Inputs, result flow.Result) error {
	left, err := flow.Remaining(ctx, r.live, ownerOf(in.Extension), r.namespace)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return r.report(ctx, in.Extension, in.removing(result))
	}
	if err := flow.DeleteManifests(ctx, r.live, r.client, r.namespace, ownerOf(in.Extension).Labels()); err != nil {
		return err
	}
	if err := r.report(ctx, in.Extension, finding{
		status: corev1beta1.ConditionFalse, reason: reasonDeleted, message: "Nothing of the extension is installed.",
	}); err != nil {
		return err
	}
	return r.patchFinalizer(ctx, in.Extension)
}

// patchFinalizer removes the finalizer.
func (r *reconciler) patchFinalizer(ctx context.Context, extension *operatorv1alpha1.Extension) error {
	_, err := r.holder.Release(ctx, extension, constants.FinalizerOperator, func(context.Context, client.Reader) ([]string, error) { return nil, nil })
	return err
}

// failed reports an error, and returns it for a retry. The condition has no data of Secrets.
func (r *reconciler) failed(ctx context.Context, in *Inputs, err error) error {
	found := finding{status: corev1beta1.ConditionFalse, reason: reasonFailed, message: textOf(in, err)}
	if in.Deleting {
		found.reason = reasonDeleteFailed
	}
	if err := r.report(ctx, in.Extension, found); err != nil {
		return err
	}
	return fmt.Errorf("install Extension %s: %s", in.Extension.Name, found.message)
}

// report writes the condition Installed if it has changed.
func (r *reconciler) report(ctx context.Context, extension *operatorv1alpha1.Extension, found finding) error {
	return extensionstatus.Write(ctx, r.client, r.live, extension, func(status *operatorv1alpha1.ExtensionStatus) {
		before := corev1beta1.FindCondition(status.Conditions, operatorv1alpha1.ExtensionInstalled)
		if found.reason == reasonNoGarden && before != nil && slices.Contains([]string{reasonNoGarden, reasonDeleted}, before.Reason) {
			return
		}
		condition := corev1beta1.Condition{
			Type: operatorv1alpha1.ExtensionInstalled, Status: found.status, Reason: found.reason, Message: found.message,
		}
		status.Conditions = corev1beta1.SetCondition(status.Conditions, corev1beta1.KeepTimes(before, condition, r.clock.Now()))
		status.ObservedGeneration = extension.Generation
	})
}
