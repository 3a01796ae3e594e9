package shoot

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// nameOf returns the name of an operation for messages.
func nameOf(kind corev1beta1.LastOperationType) string {
	switch kind {
	case corev1beta1.LastOperationTypeCreate:
		return "Shoot cluster creation"
	case corev1beta1.LastOperationTypeDelete:
		return "Shoot cluster deletion"
	}
	return "Shoot cluster reconciliation"
}

// started returns the status at the start of an operation. It is the current status if no operation starts and nothing has changed.
func (r *reconciler) started(in Inputs) corev1beta1.ShootStatus {
	status := *in.Shoot.Status.DeepCopy()
	kind := operationType(in.Shoot)
	last := status.LastOperation
	begins := last == nil || status.ObservedGeneration != in.Shoot.Generation ||
		last.Type != kind && (last.Type != corev1beta1.LastOperationTypeCreate || kind != corev1beta1.LastOperationTypeReconcile)
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
	if len(in.refused()) == 0 {
		status.AdvertisedAddresses = in.advertised()
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
	if kind == corev1beta1.LastOperationTypeDelete && report.LastOperation.State == corev1beta1.LastOperationStateSucceeded {
		report.LastOperation = before // the deletion has succeeded only when the finalizer is removed
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

// isKept reports whether an error does not change the status: it passes by itself, and what the Shoot last reported is
// still true.
func isKept(shoot *corev1beta1.Shoot, err error) bool {
	last := shoot.Status.LastOperation
	succeeded := last != nil && last.State == corev1beta1.LastOperationStateSucceeded && !isUnfinished(shoot)
	return onlyOf(err, apierrors.IsConflict) || succeeded && onlyOf(err, isTransient)
}

// isTransient reports whether an error is expected to pass without a change by anyone.
func isTransient(err error) bool {
	var network net.Error
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) || utilnet.IsProbableEOF(err) || errors.As(err, &network)
}

// onlyOf reports whether all parts of an error are of a kind.
func onlyOf(err error, is func(error) bool) bool {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return is(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(part error) bool { return !onlyOf(part, is) })
}

// failed returns the status after an error that does not concern a bundle.
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
	return status
}
