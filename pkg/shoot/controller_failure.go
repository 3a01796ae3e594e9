package shoot

import (
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

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
	shoot.Status.LastErrors = progress.LastErrors
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
