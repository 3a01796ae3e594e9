package shoot

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// reportFailure reports an error that ended the pass before its bundles were emitted.
func (p *pass) reportFailure(ctx context.Context, failure error) error {
	passes := p.passes(failure)
	if isKept(p.shoot, failure) {
		return failure
	}
	reason := flow.ReasonOf(failure)
	if passes {
		return errors.Join(failure, p.write(ctx, p.shoot, p.retried(p.shoot, reason)))
	}
	failure = errors.Join(failure, p.write(ctx, p.shoot, p.failed(p.shoot, reason)))
	p.events.Eventf(p.shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", reason)
	return failure
}

// retried returns the status while a failure is expected to pass: the operation continues, and says what it waits for.
func (r *reconciler) retried(shoot *corev1beta1.Shoot, text string) corev1beta1.ShootStatus {
	status := *shoot.Status.DeepCopy()
	before := ptr.Deref(status.LastOperation, corev1beta1.LastOperation{})
	if before.State == corev1beta1.LastOperationStateError || before.State == corev1beta1.LastOperationStateFailed {
		return status
	}
	next := before
	next.Type, next.State = operationType(shoot), corev1beta1.LastOperationStateProcessing
	next.Description = waiting(text)
	if next != before {
		next.LastUpdateTime = metav1.NewTime(r.options.Clock.Now())
	}
	status.LastOperation = &next
	return status
}

// waiting returns the description of an operation while a failure is expected to pass.
func waiting(text string) string {
	return "Waiting: " + strings.TrimSuffix(text, ".") + ". This is tried again, and is an error if it stays."
}

// isKept reports whether an error does not change the status: it passes by itself, and what the Shoot last reported is
// still true.
func isKept(shoot *corev1beta1.Shoot, err error) bool {
	last := shoot.Status.LastOperation
	succeeded := last != nil && last.State == corev1beta1.LastOperationStateSucceeded && !isUnfinished(shoot)
	return requeue.OnlyConflicts(err) || succeeded && requeue.OnlyOf(err, requeue.IsTransient)
}

// failed returns the status after an error that does not concern a bundle. It becomes the only one of lastErrors without a task.
func (r *reconciler) failed(shoot *corev1beta1.Shoot, text string) corev1beta1.ShootStatus {
	status := *shoot.Status.DeepCopy()
	now := metav1.NewTime(r.options.Clock.Now())
	before := ptr.Deref(status.LastOperation, corev1beta1.LastOperation{})
	next := corev1beta1.LastOperation{
		Type: operationType(shoot), State: corev1beta1.LastOperationStateError, Progress: before.Progress, LastUpdateTime: before.LastUpdateTime,
		Description: flow.UpperFirst(strings.TrimSuffix(text, ".")) + ". Operation will be retried.",
	}
	if next != before {
		next.LastUpdateTime = now
	}
	status.LastOperation = &next
	status.LastErrors = withoutTask(status.LastErrors, flow.UpperFirst(text), now)
	return status
}

// withoutTask returns the errors of bundles, and another one, whose time remains if it is among them already.
func withoutTask(all []corev1beta1.LastError, text string, now metav1.Time) []corev1beta1.LastError {
	next := corev1beta1.LastError{Description: text, LastUpdateTime: &now}
	var errs []corev1beta1.LastError
	for _, one := range all {
		switch {
		case one.TaskID != nil:
			errs = append(errs, one)
		case one.Description == text && one.LastUpdateTime != nil:
			next.LastUpdateTime = one.LastUpdateTime
		}
	}
	return append(errs, next)
}

// almostDone is the maximum progress of an operation if one of its steps has failed.
const almostDone = 99

// reportedError is an error that needs no report in the status: the status reports it, or it does not concern the operation.
type reportedError struct{ error }

// Unwrap returns the error that needs no report.
func (e reportedError) Unwrap() error { return e.error }

// reported marks an error as one that needs no report in the status. It returns nil for nil.
func reported(err error) error {
	if err == nil {
		return nil
	}
	return reportedError{err}
}

// failedStep returns the status after an emission during which a step has failed. It keeps the errors of components and the
// progress of the given status, but an operation does not succeed in this pass.
func (r *reconciler) failedStep(in Inputs, progress corev1beta1.ShootStatus, failure error) corev1beta1.ShootStatus {
	shoot := in.Shoot.DeepCopy()
	before := shoot.Status.LastOperation
	former := slices.DeleteFunc(shoot.Status.LastErrors, func(one corev1beta1.LastError) bool { return one.TaskID != nil })
	shoot.Status.LastErrors = slices.Concat(progress.LastErrors, former)
	if before != nil {
		current := *before
		current.Progress = max(current.Progress, min(progress.LastOperation.Progress, almostDone))
		shoot.Status.LastOperation = &current
	}
	status := r.failed(shoot, flow.ReasonOf(failure))
	if before != nil {
		same := *status.LastOperation
		same.LastUpdateTime = before.LastUpdateTime
		if same == *before {
			status.LastOperation = before
		}
	}
	return status
}
