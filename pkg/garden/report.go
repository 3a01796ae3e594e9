package garden

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

const (
	fieldManager = "gardener-operator"

	willBeRetried = "Operation will be retried."
)

// kindOf returns the type and the name of the current operation.
func kindOf(deleting bool) (corev1beta1.LastOperationType, string) {
	if deleting {
		return corev1beta1.LastOperationTypeDelete, "Garden cluster deletion"
	}
	return corev1beta1.LastOperationTypeReconcile, "Garden cluster reconciliation"
}

// begin writes the status at the start of an operation, and shows which Secret has the kubeconfig for programs in the runtime cluster.
func (p *pass) begin(ctx context.Context) error {
	const annotation = constants.AnnotationGenericTokenKubeconfigSecretName
	name := p.in.secret(constants.SecretNameGenericTokenKubeconfig)
	if name != "" && p.garden.Annotations[annotation] != name {
		if err := p.patch(ctx, p.garden, func() { metav1.SetMetaDataAnnotation(&p.garden.ObjectMeta, annotation, name) }); err != nil {
			return err
		}
	}
	return p.write(ctx, p.garden, p.started())
}

// started returns the status at the start of an operation: its generation and the operator that executes it. It returns an equal status if no operation
// starts and nothing has changed.
func (p *pass) started() operatorv1alpha1.GardenStatus {
	in, status := p.in, *p.garden.Status.DeepCopy()
	kind, name := kindOf(in.Deleting)
	if status.ObservedGeneration != p.garden.Generation || status.LastOperation == nil || status.LastOperation.Type != kind {
		status.LastOperation = &corev1beta1.LastOperation{
			Type: kind, State: corev1beta1.LastOperationStateProcessing, Description: "Starting " + name, LastUpdateTime: metav1.NewTime(in.Now),
		}
		if inactive := Inactive(in.Garden); len(inactive) > 0 && !in.Deleting {
			p.events.Eventf(p.garden, nil, corev1.EventTypeWarning, eventInactive, actionReconcile,
				"accepted but not active in this version: %s", strings.Join(inactive, ", "))
		}
	}
	status.ObservedGeneration = p.garden.Generation
	status.Gardener = p.options.Identity.DeepCopy()
	status.AdvertisedAddresses = in.advertised()
	return status
}

// report shows the outcome of a pass in the status, and returns when the next pass is due.
func (p *pass) report(ctx context.Context, failure error) (reconcile.Result, error) {
	if failure == nil {
		status, later := p.progress()
		p.Wake.In(later)
		failure = p.write(ctx, p.garden, status)
	}
	if failure == nil && p.in.Deleting {
		failure = p.finish(ctx)
	}
	passes := p.troubled.Passes(p.garden.UID, failure, p.Wake.Now)
	switch {
	case failure == nil:
		return p.Wake.Result(), nil
	case requeue.OnlyConflicts(failure):
		return reconcile.Result{RequeueAfter: requeue.AfterConflict}, nil
	case passes:
		return reconcile.Result{}, failure
	}
	failure = errors.Join(failure, p.write(ctx, p.garden, p.failed(failure)))
	p.events.Eventf(p.garden, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", flow.ReasonOf(failure))
	return reconcile.Result{}, failure
}

// failed returns the status after an error that does not belong to a bundle.
func (p *pass) failed(err error) operatorv1alpha1.GardenStatus {
	status := *p.garden.Status.DeepCopy()
	kind, _ := kindOf(p.garden.DeletionTimestamp != nil)
	status.LastOperation = corev1beta1.KeepTime(status.LastOperation, corev1beta1.LastOperation{
		Type: kind, State: corev1beta1.LastOperationStateError,
		Description: flow.UpperFirst(strings.TrimSuffix(flow.ReasonOf(err), ".")) + ". " + willBeRetried,
		Progress:    ptr.Deref(status.LastOperation, corev1beta1.LastOperation{}).Progress,
	}, p.options.Clock.Now())
	return status
}

// progress returns the status after an emission, and when to write it again; 0 for never.
func (p *pass) progress() (operatorv1alpha1.GardenStatus, time.Duration) {
	status := *p.garden.Status.DeepCopy()
	status.Credentials = p.in.Garden.Status.Credentials.DeepCopy()
	before := status.LastOperation
	if before != nil && before.State == corev1beta1.LastOperationStateSucceeded && p.Result.Settled() {
		return status, 0 // a condition reports the health of the components
	}
	next := corev1beta1.KeepTime(before, describe(p.in, p.Result), p.in.Now)
	if wait := flow.PauseProgress(before, *next, p.in.Now); wait > 0 {
		return status, wait
	}
	status.LastOperation = next
	if next.State == corev1beta1.LastOperationStateSucceeded && !p.in.Deleting {
		if status.Credentials == nil {
			status.Credentials = &operatorv1alpha1.Credentials{}
		}
		status.Credentials.EncryptionAtRest = p.in.encryptionAtRest()
	}
	return status, 0
}

// describe returns the last operation that describes the progress of an emission.
func describe(in Inputs, result flow.Result) corev1beta1.LastOperation {
	kind, name := kindOf(in.Deleting)
	report := flow.Progress(flow.Operation{Name: name, Type: kind}, in.Owner, result, in.Now).LastOperation
	report.LastUpdateTime = metav1.Time{}
	switch report.State {
	case corev1beta1.LastOperationStateSucceeded:
		if inactive := Inactive(in.Garden); len(inactive) > 0 && !in.Deleting {
			report.Description += ". Not active in this version: " + strings.Join(inactive, ", ")
		}
	case corev1beta1.LastOperationStateProcessing:
		var waits []string
		for _, wait := range result.Plan.Waits {
			waits = append(waits, wait.Reason)
		}
		if len(waits) > 0 {
			report.Description += ". Waiting: " + strings.Join(waits, "; ")
		}
	case corev1beta1.LastOperationStateFailed:
		report.State = corev1beta1.LastOperationStateError
		report.Description += " " + willBeRetried
	}
	if why := in.inUse(); in.Deleting && why != "" {
		report.State, report.Description = corev1beta1.LastOperationStateError, "The deletion is blocked: "+why+". "+willBeRetried
	}
	return report
}

// patch applies a change to the Garden with optimistic locking.
func (r *reconciler) patch(ctx context.Context, garden *operatorv1alpha1.Garden, change func()) error {
	before := client.MergeFromWithOptions(garden.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.runtime.Patch(ctx, garden, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write Garden %s: %w", garden.Name, err)
	}
	r.written.Remember(garden)
	return nil
}

// write updates the status if it has changed. Other controllers write the conditions.
func (r *reconciler) write(ctx context.Context, garden *operatorv1alpha1.Garden, status operatorv1alpha1.GardenStatus) error {
	if equality.Semantic.DeepEqual(status, garden.Status) {
		return nil
	}
	last, before := garden.Status.LastOperation, client.MergeFrom(garden.DeepCopy())
	garden.Status = status
	if err := r.runtime.Status().Patch(ctx, garden, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of Garden %s: %w", garden.Name, err)
	}
	flow.LogTransition(ctx, last, status.LastOperation)
	r.written.Remember(garden)
	return nil
}
