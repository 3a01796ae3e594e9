package etcd

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// fail shows an error that ends a pass in the status, and returns it. Errors that pass by themselves are not shown: a cluster is not unhealthy
// because the API server restarts.
func (r *Reconciler) fail(ctx context.Context, in Inputs, failure error) (reconcile.Result, error) {
	if result, err := retryConflict(failure); err == nil {
		return result, nil
	}
	if requeue.OnlyOf(failure, requeue.IsTransient) {
		return reconcile.Result{}, failure
	}
	err := r.report(ctx, in, failedStatus(in, failure))
	if requeue.OnlyConflicts(err) {
		err = nil
	}
	return reconcile.Result{}, errors.Join(failure, err)
}

// failedStatus returns the status after an error that ended a pass. It is pure. What is known of members stays: the pass found out nothing about
// them.
func failedStatus(in Inputs, failure error) druidv1alpha1.EtcdStatus {
	status := *in.Etcd.Status.DeepCopy()
	report := withError(flow.Report{}, failure)
	status.LastOperation = in.lastOperation(report)
	status.LastErrors = in.lastErrors(Result{}, report)
	return status
}

// withError returns a report with a further error, which makes the operation an Error unless it passes by itself.
func withError(report flow.Report, failure error) flow.Report {
	if failure == nil || requeue.OnlyOf(failure, requeue.IsTransient) {
		return report
	}
	reason := flow.ReasonOf(failure)
	report.LastOperation.State, report.LastOperation.Description = corev1beta1.LastOperationStateError, flow.UpperFirst(reason)
	report.LastErrors = append(report.LastErrors, corev1beta1.LastError{Description: reason})
	return report
}
