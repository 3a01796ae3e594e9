package shoot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// begin writes the status at the start of an operation.
func (p *pass) begin(ctx context.Context) error {
	if p.decision.stopped {
		return nil
	}
	begins := p.shoot.Status.LastOperation == nil || p.shoot.Status.ObservedGeneration != p.shoot.Generation
	if err := p.write(ctx, p.shoot, p.started(p.in)); err != nil {
		return err
	}
	if begins {
		p.events.Eventf(p.shoot, nil, corev1.EventTypeNormal, eventReconciling, actionReconcile, "%s begins", nameOf(operationType(p.shoot)))
	}
	return nil
}

// report shows the outcome of a pass and its failure in the status, and returns when the next pass is due. If the bundles
// were emitted, the status reports the failure together with the progress.
func (p *pass) report(ctx context.Context, failure error) (reconcile.Result, error) {
	emitted := p.result.Live.ManagedResources != nil
	switch {
	case p.decision.stopped:
		return p.wake.Result(), reported(failure) // the last operation remains as it is
	case failure == nil && !emitted:
		return p.wake.Result(), nil
	case !emitted:
		return reconcile.Result{}, p.reportFailure(ctx, failure)
	}
	if err := p.writeProgress(ctx, failure); err != nil {
		return reconcile.Result{}, p.reportFailure(ctx, errors.Join(failure, err))
	}
	if p.in.Deleting {
		if err := p.finish(ctx, failure == nil); err != nil {
			return reconcile.Result{}, p.reportFailure(ctx, errors.Join(failure, err))
		}
	} else if failure == nil {
		// This happens after the operation. Its failure concerns nothing that the status reports.
		failure = p.deleteUnused(ctx, p.in, p.result)
	}
	wake := p.wake.Result()
	if failure != nil && p.busy {
		log.FromContext(ctx).Error(failure, "A step failed; the others go on", "again", wake.RequeueAfter.String())
		return wake, nil
	}
	return wake, reported(failure)
}

// reportFailure reports an error that ended the pass before its bundles were emitted.
func (p *pass) reportFailure(ctx context.Context, failure error) error {
	reason := flow.ReasonOf(failure)
	if !isKept(p.shoot, failure) {
		failure = errors.Join(failure, p.write(ctx, p.shoot, p.reconciler.failed(p.shoot, reason)))
	}
	p.events.Eventf(p.shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", reason)
	return failure
}

// writeProgress writes the status after an emission.
func (p *pass) writeProgress(ctx context.Context, failure error) error {
	shoot, before := p.shoot, p.shoot.Status.LastOperation
	status, later := p.progress(p.in, p.result)
	if failure != nil {
		status, later = p.failedStep(p.in, status, failure), 0
		p.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", flow.ReasonOf(failure))
	}
	p.wake.In(later)
	if err := p.write(ctx, shoot, status); err != nil {
		return err
	}
	now := shoot.Status.LastOperation
	if now.State == corev1beta1.LastOperationStateSucceeded && before.State != now.State {
		p.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventReconciled, actionReconcile, "%s", now.Description)
		p.wake.In(time.Millisecond) // reconcile again, so that the Cluster contains the new status
	} else if now.State == corev1beta1.LastOperationStateFailed {
		p.wake.In(time.Millisecond) // likewise
	}
	if now.Description != before.Description &&
		(now.State == corev1beta1.LastOperationStateError || now.State == corev1beta1.LastOperationStateFailed) {
		p.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", now.Description)
	}
	if held := p.held(p.result); held != "" && before.Description != now.Description {
		p.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventRolloutHeld, actionReconcile, "%s", strings.TrimPrefix(held, ". "))
	}
	return nil
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

// patch changes the Shoot. It fails with a conflict if the Shoot has changed since it was read.
func (r *reconciler) patch(ctx context.Context, shoot *corev1beta1.Shoot, change func()) error {
	before := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.garden.Patch(ctx, shoot, before, client.FieldOwner(fieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err))
	}
	r.written.Remember(shoot)
	return nil
}

// write writes the status if it has changed. It sends only the changed conditions, which the API server merges by type,
// so that other writers keep theirs. If the write fails, shoot retains its previous status, so that the next write
// compares with what is stored.
func (r *reconciler) write(ctx context.Context, shoot *corev1beta1.Shoot, status corev1beta1.ShootStatus) error {
	if equality.Semantic.DeepEqual(status, shoot.Status) {
		return nil
	}
	next := shoot.DeepCopy()
	next.Status = status
	if err := r.garden.Status().Patch(ctx, next, client.StrategicMergeFrom(shoot.DeepCopy()), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	*shoot = *next
	r.written.Remember(shoot)
	return nil
}
