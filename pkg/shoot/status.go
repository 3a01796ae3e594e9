package shoot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/latest"
	"github.com/trellis-k8s/trellis/pkg/secrets"
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
	emitted := p.Result.Live.ManagedResources != nil
	if failure != nil {
		failure = p.withRole(p.shoot, failure)
	}
	switch {
	case p.decision.stopped:
		return p.Wake.Result(), reported(failure) // the last operation remains as it is
	case p.awaitsRights(failure):
		return p.awaitRights(ctx, failure)
	case failure == nil && !emitted:
		p.troubled.Forget(p.shoot.UID)
		return p.Wake.Result(), nil
	case !emitted:
		return reconcile.Result{}, p.reportFailure(ctx, failure)
	}
	if err := p.writeProgress(ctx, failure); err != nil {
		return reconcile.Result{}, p.reportFailure(ctx, errors.Join(failure, err))
	}
	switch {
	case p.in.Deleting:
		if err := p.finish(ctx, failure == nil); err != nil {
			return reconcile.Result{}, p.reportFailure(ctx, errors.Join(failure, err))
		}
	case p.in.Phase == phaseMigrate:
		if err := p.leave(ctx, failure == nil); err != nil {
			return reconcile.Result{}, p.reportFailure(ctx, errors.Join(failure, err))
		}
	case failure == nil:
		// This happens after the operation. Its failure concerns nothing that the status reports.
		failure = p.deleteUnused(ctx, p.in, p.Result)
	}
	wake := p.Wake.Result()
	if failure != nil && p.busy {
		log.FromContext(ctx).Error(failure, "A step failed; the others go on", "again", wake.RequeueAfter.String())
		return wake, nil
	}
	return wake, reported(failure)
}

// writeProgress writes the status after an emission.
func (p *pass) writeProgress(ctx context.Context, failure error) error {
	shoot, before := p.shoot, p.shoot.Status.LastOperation
	status, later := p.progress(p.in, p.Result)
	passes, succeeds := p.passes(failure), status.LastOperation.State == corev1beta1.LastOperationStateSucceeded
	switch {
	case failure == nil:
	case !passes:
		status, later = p.failedStep(p.in, status, failure), 0
		p.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", flow.ReasonOf(failure))
	case !isKept(shoot, failure) && (succeeds || status.LastOperation.State == corev1beta1.LastOperationStateProcessing):
		status, later = p.retried(shoot, flow.ReasonOf(failure)), 0
	case succeeds && before.State != corev1beta1.LastOperationStateSucceeded:
		return nil // a step has to be repeated
	}
	p.Wake.In(later)
	if err := p.write(ctx, shoot, status); err != nil {
		return err
	}
	now := shoot.Status.LastOperation
	if now.State == corev1beta1.LastOperationStateSucceeded && before.State != now.State {
		p.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventReconciled, actionReconcile, "%s", now.Description)
		p.Wake.In(time.Millisecond) // reconcile again, so that the Cluster contains the new status
	} else if now.State == corev1beta1.LastOperationStateFailed {
		p.Wake.In(time.Millisecond) // likewise
	}
	if now.Description != before.Description &&
		(now.State == corev1beta1.LastOperationStateError || now.State == corev1beta1.LastOperationStateFailed) {
		p.events.Eventf(shoot, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", now.Description)
	}
	if held := p.held(p.Result); held != "" && before.Description != now.Description {
		p.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventRolloutHeld, actionReconcile, "%s", strings.TrimPrefix(held, ". "))
	}
	return nil
}

// passes reports whether the failure of this pass is not an error of the Shoot yet, because it passes by itself.
func (p *pass) passes(failure error) bool {
	return p.troubled.Passes(p.shoot.UID, failure, p.Wake.Now)
}

// nameOf returns the name of an operation for messages.
func nameOf(kind corev1beta1.LastOperationType) string {
	switch kind {
	case corev1beta1.LastOperationTypeCreate:
		return "Shoot cluster creation"
	case corev1beta1.LastOperationTypeDelete:
		return "Shoot cluster deletion"
	case corev1beta1.LastOperationTypeMigrate:
		return "Shoot cluster preparation for migration"
	case corev1beta1.LastOperationTypeRestore:
		return "Shoot cluster restoration"
	}
	return "Shoot cluster reconciliation"
}

// started returns the status at the start of an operation. It is the current status if no operation starts and nothing has changed.
func (r *reconciler) started(in Inputs) corev1beta1.ShootStatus {
	status := *in.Shoot.Status.DeepCopy()
	kind := operationType(in.Shoot)
	last := status.LastOperation
	begins := last == nil || status.ObservedGeneration != in.Shoot.Generation ||
		last.Type != kind && (last.Type != corev1beta1.LastOperationTypeCreate && last.Type != corev1beta1.LastOperationTypeRestore ||
			kind != corev1beta1.LastOperationTypeReconcile)
	if begins {
		status.LastOperation = &corev1beta1.LastOperation{
			Type: kind, State: corev1beta1.LastOperationStateProcessing,
			Description: "Starting " + nameOf(kind), LastUpdateTime: metav1.NewTime(in.Now),
		}
		status.RetryCycleStartTime = ptr.To(metav1.NewTime(in.Now))
	}
	status.ObservedGeneration = in.Shoot.Generation
	status.Gardener = *r.options.Identity
	status.TechnicalID = in.Namespace
	if status.UID == "" {
		status.UID = in.Shoot.UID
	}
	if kind != corev1beta1.LastOperationTypeDelete {
		status.SeedName = ptr.To(in.Seed.Name)
	}
	if ptr.Deref(status.ClusterIdentity, "") == "" && in.ClusterIdentity != "" {
		status.ClusterIdentity = ptr.To(in.ClusterIdentity)
	}
	if in.lacksIssuer() == "" {
		status.AdvertisedAddresses = in.advertised()
	}
	if in.hasWorkers() {
		status.Networking = in.networks()
	}
	return status
}

// progress returns the status after an emission, and after how long to write it again. 0 means never.
func (r *reconciler) progress(in Inputs, result flow.Result) (corev1beta1.ShootStatus, time.Duration) {
	status := *in.Shoot.Status.DeepCopy()
	before := ptr.Deref(status.LastOperation, corev1beta1.LastOperation{})
	kind := before.Type
	operation := flow.Operation{
		Name: nameOf(kind), Type: kind, Before: flow.Report{
			LastOperation: before, LastErrors: status.LastErrors,
		}, RetryUntil: r.retryUntil(status),
	}
	report := flow.Progress(operation, in.Owner, result, in.Now)
	if before.State == corev1beta1.LastOperationStateSucceeded && (len(report.LastErrors) == 0 || result.Settled()) {
		// Later problems of components are reported by conditions.
		finished, _, _ := strings.Cut(before.Description, heldBack)
		status.LastOperation.Description = finished + r.held(result)
		return status, 0
	}
	if (kind == corev1beta1.LastOperationTypeDelete || kind == corev1beta1.LastOperationTypeMigrate) && report.LastOperation.State == corev1beta1.LastOperationStateSucceeded {
		report.LastOperation = before // it has succeeded only when the finalizer is removed, or the destination is responsible
	}
	explain(&report, before, result, in.Now)
	if wait := report.Pause(operation.Before, in.Now); wait > 0 && before.Progress > 0 {
		return status, wait
	}
	status.LastOperation, status.LastErrors = &report.LastOperation, report.LastErrors
	switch report.LastOperation.State {
	case corev1beta1.LastOperationStateSucceeded:
		status.RetryCycleStartTime, status.LastErrors = nil, nil
		status.IsHibernated = in.hibernated()
		status.Credentials = in.credentials()
	case corev1beta1.LastOperationStateFailed:
		status.RetryCycleStartTime = nil
	}
	return status, 0
}

// heldBack introduces the reason for which changes of gardenlet are held.
const heldBack = ". Changes of the new version of gardenlet are held: "

// held returns why changes of a new version of gardenlet are held for a Shoot, or an empty string.
func (r *reconciler) held(result flow.Result) string {
	for _, wait := range result.Plan.Waits {
		if wait.Name == flow.WaitRollout {
			return heldBack + wait.Reason
		}
	}
	return ""
}

// explain adds the reasons of pending waits to the description of an operation in progress.
func explain(report *flow.Report, before corev1beta1.LastOperation, result flow.Result, now time.Time) {
	if report.LastOperation.State != corev1beta1.LastOperationStateProcessing {
		return
	}
	var waits []string
	for _, wait := range result.Plan.Waits {
		if wait.Name != waitOrder && !slices.Contains(waits, wait.Reason) {
			waits = append(waits, wait.Reason)
		}
	}
	if len(waits) == 0 {
		return
	}
	report.LastOperation.Description += ". Waiting: " + strings.Join(waits, "; ")
	same := report.LastOperation
	same.LastUpdateTime = before.LastUpdateTime
	report.LastOperation.LastUpdateTime = metav1.NewTime(now)
	if same == before {
		report.LastOperation.LastUpdateTime = before.LastUpdateTime
	}
}

// retryUntil returns when errors of an operation become final. Zero means never.
func (r *reconciler) retryUntil(status corev1beta1.ShootStatus) time.Time {
	controller := r.options.controller()
	if status.RetryCycleStartTime == nil || controller.RetryDuration == nil {
		return time.Time{}
	}
	return status.RetryCycleStartTime.Add(controller.RetryDuration.Duration)
}

// credentials returns status.credentials after an operation, with the encrypted resources and the provider of the active
// key. All objects have been rewritten by then.
func (in Inputs) credentials() *corev1beta1.ShootCredentials {
	credentials := ptr.Deref(in.Shoot.Status.Credentials.DeepCopy(), corev1beta1.ShootCredentials{})
	provider := in.Secrets[constants.SecretNameETCDEncryptionKey].Active.Data[secrets.KeyEncryptionProvider]
	credentials.EncryptionAtRest = &corev1beta1.EncryptionAtRest{
		Resources: in.encryptedResources()[1:], // without Secrets, which are always encrypted and which the status omits
		Provider:  corev1beta1.EncryptionProviderStatus{Type: cmp.Or(corev1beta1.EncryptionProviderType(provider), in.encryptionProvider())},
	}
	return &credentials
}

// isUnfinished reports whether the last operation of a Shoot has never succeeded. A Shoot whose operation has succeeded
// is not unfinished again because of a later error. Neither the rollout of new versions nor the confinement to the
// maintenance window may depend on such errors, which are often not even its own.
func isUnfinished(shoot *corev1beta1.Shoot) bool {
	status := shoot.Status
	return operationType(shoot) != corev1beta1.LastOperationTypeReconcile || status.ObservedGeneration != shoot.Generation ||
		status.RetryCycleStartTime != nil
}

// waitsForSeed returns the status of a Shoot while its Seed is not ready. The Shoot is not the cause, so its last operation
// remains. Only a Shoot without an operation says that its creation is pending.
func (r *reconciler) waitsForSeed(shoot *corev1beta1.Shoot, why string) corev1beta1.ShootStatus {
	status := *shoot.Status.DeepCopy()
	if status.LastOperation == nil {
		status.LastOperation = &corev1beta1.LastOperation{
			Type: operationType(shoot), State: corev1beta1.LastOperationStatePending, LastUpdateTime: metav1.NewTime(r.options.Clock.Now()),
		}
	}
	if status.LastOperation.State == corev1beta1.LastOperationStatePending {
		status.LastOperation.Description = flow.UpperFirst(why) + "."
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
	if err := r.garden.Status().Patch(ctx, next, latest.StatusPatch(shoot.DeepCopy()), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	flow.LogTransition(ctx, shoot.Status.LastOperation, status.LastOperation)
	*shoot = *next
	r.written.Remember(shoot)
	return nil
}
