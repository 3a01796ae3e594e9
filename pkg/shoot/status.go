package shoot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if before.State == corev1beta1.LastOperationStateSucceeded && (len(report.LastErrors) == 0 || settled(result)) {
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

// settled reports whether an emission had nothing to do.
func settled(result flow.Result) bool {
	return len(result.Steps) == 0 && len(result.Problems) == 0 && len(result.Pending) == 0 && len(result.Plan.Waits) == 0
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

// failed returns the status after an error that does not concern a bundle.
func (r *reconciler) failed(shoot *corev1beta1.Shoot, text string) corev1beta1.ShootStatus {
	status := *shoot.Status.DeepCopy()
	now := metav1.NewTime(r.options.Clock.Now())
	before := ptr.Deref(status.LastOperation, corev1beta1.LastOperation{})
	next := corev1beta1.LastOperation{
		Type: operationType(shoot), State: corev1beta1.LastOperationStateError, Progress: before.Progress, LastUpdateTime: before.LastUpdateTime,
		Description: strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + ". Operation will be retried.",
	}
	if next != before {
		next.LastUpdateTime = now
	}
	status.LastOperation = &next
	return status
}
