package seed

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

const willBeRetried = "Operation will be retried."

// kindOf returns the type and the name of the current operation.
func kindOf(deleting bool) (corev1beta1.LastOperationType, string) {
	if deleting {
		return corev1beta1.LastOperationTypeDelete, "Seed cluster deletion"
	}
	return corev1beta1.LastOperationTypeReconcile, "Seed cluster reconciliation"
}

// started returns the status at the start of an operation: its generation and the gardenlet that executes it. It
// returns an equal status if no operation starts and nothing has changed.
func (r *reconciler) started(in Inputs) corev1beta1.SeedStatus {
	status := *in.Seed.Status.DeepCopy()
	kind, name := kindOf(in.Deleting)
	if status.ObservedGeneration != in.Seed.Generation || status.LastOperation == nil || status.LastOperation.Type != kind {
		status.LastOperation = &corev1beta1.LastOperation{
			Type: kind, State: corev1beta1.LastOperationStateProcessing, Description: "Starting " + name, LastUpdateTime: metav1.NewTime(in.Now),
		}
		if inactive := Inactive(in.Seed); len(inactive) > 0 && !in.Deleting {
			r.events.Eventf(in.Seed, nil, corev1.EventTypeWarning, eventInactive, actionReconcile,
				"accepted but not active in this version: %s", strings.Join(inactive, ", "))
		}
	}
	status.ObservedGeneration = in.Seed.Generation
	status.Gardener = r.options.Identity.DeepCopy()
	status.KubernetesVersion = ptr.To("v" + in.KubernetesVersion)
	if ptr.Deref(status.ClusterIdentity, "") == "" && in.Identity != "" {
		status.ClusterIdentity = ptr.To(in.Identity)
	}
	status.Capacity, status.Allocatable = capacities(in)
	status.ClientCertificateExpirationTimestamp = nil
	if r.options.CertificateExpires != nil {
		if until := r.options.CertificateExpires(); !until.IsZero() {
			status.ClientCertificateExpirationTimestamp = ptr.To(metav1.NewTime(until.Truncate(time.Second)))
		}
	}
	// Times lose fractions of a second when they are stored.
	if before := in.Seed.Status.ClientCertificateExpirationTimestamp; before != nil && status.ClientCertificateExpirationTimestamp.Equal(before) {
		status.ClientCertificateExpirationTimestamp = before
	}
	return status
}

// capacities returns the configured capacity of gardenlet, in total and without the reserved part.
func capacities(in Inputs) (capacity, allocatable corev1.ResourceList) {
	if in.Config.Resources == nil || len(in.Config.Resources.Capacity) == 0 {
		return nil, nil
	}
	capacity, allocatable = in.Config.Resources.Capacity.DeepCopy(), in.Config.Resources.Capacity.DeepCopy()
	for name, reserved := range in.Config.Resources.Reserved {
		if quantity, found := allocatable[name]; found {
			quantity.Sub(reserved)
			allocatable[name] = quantity
		}
	}
	return keep(in.Seed.Status.Capacity, capacity), keep(in.Seed.Status.Allocatable, allocatable)
}

// keep returns the previous quantities if they are equal, because their text might differ.
func keep(before, now corev1.ResourceList) corev1.ResourceList {
	if equality.Semantic.DeepEqual(before, now) {
		return before
	}
	return now
}

// failed returns the status after an error that does not belong to a bundle.
func (r *reconciler) failed(seed *corev1beta1.Seed, err error) corev1beta1.SeedStatus {
	status := *seed.Status.DeepCopy()
	kind, _ := kindOf(seed.DeletionTimestamp != nil)
	status.LastOperation = corev1beta1.KeepTime(seed.Status.LastOperation, corev1beta1.LastOperation{
		Type: kind, State: corev1beta1.LastOperationStateError, Description: sentence(flow.ReasonOf(err)) + " " + willBeRetried,
		Progress: ptr.Deref(seed.Status.LastOperation, corev1beta1.LastOperation{}).Progress,
	}, r.options.Clock.Now())
	return status
}

// progress returns the status after an emission, and when to write it again; 0 for never.
func (r *reconciler) progress(in Inputs, result flow.Result) (corev1beta1.SeedStatus, time.Duration) {
	status := *in.Seed.Status.DeepCopy()
	before := status.LastOperation
	if before != nil && before.State == corev1beta1.LastOperationStateSucceeded && result.Settled() {
		return status, 0 // a condition reports the health of the components
	}
	next := corev1beta1.KeepTime(before, describe(in, result), in.Now)
	if wait := flow.PauseProgress(before, *next, in.Now); wait > 0 {
		return status, wait
	}
	status.LastOperation = next
	if next.State == corev1beta1.LastOperationStateSucceeded && next.Type != corev1beta1.LastOperationTypeDelete {
		status.Conditions = unchecked(status.Conditions, in.Now)
	}
	return status, 0
}

// describe returns the last operation that describes the progress of an emission.
func describe(in Inputs, result flow.Result) corev1beta1.LastOperation {
	kind, name := kindOf(in.Deleting)
	progress := flow.Progress(flow.Operation{Name: name, Type: kind}, in.Owner, result, in.Now)
	report := progress.LastOperation
	report.LastUpdateTime = metav1.Time{}
	var waits []string
	for _, wait := range result.Plan.Waits {
		if wait.Name != waitOrder {
			waits = append(waits, wait.Reason)
		}
	}
	switch report.State {
	case corev1beta1.LastOperationStateSucceeded:
		if inactive := Inactive(in.Seed); len(inactive) > 0 && !in.Deleting {
			report.Description += ". Not active in this version: " + strings.Join(inactive, ", ")
		}
	case corev1beta1.LastOperationStateProcessing:
		if len(waits) > 0 {
			report.Description += ". Waiting: " + strings.Join(waits, "; ")
		}
	case corev1beta1.LastOperationStateFailed:
		report.State = corev1beta1.LastOperationStateError
		report.Description += " " + willBeRetried
	}
	if refused, _ := in.inUse(); in.Deleting && refused != "" && in.Bucket == nil {
		report.State, report.Description = corev1beta1.LastOperationStateError, "The deletion is blocked: "+refused+". "+willBeRetried
	}
	if codes := codesOf(progress.LastErrors); codes != "" && report.State == corev1beta1.LastOperationStateError {
		report.Description += " " + codes
	}
	return report
}

// codesOf returns the codes of errors as text, because the status of a Seed has no field for them.
func codesOf(errs []corev1beta1.LastError) string {
	var codes []corev1beta1.ErrorCode
	for _, err := range errs {
		codes = append(codes, err.Codes...)
	}
	if len(codes) == 0 {
		return ""
	}
	slices.Sort(codes)
	texts := make([]string, 0, len(codes))
	for _, code := range slices.Compact(codes) {
		texts = append(texts, string(code))
	}
	return fmt.Sprintf("[%s]", strings.Join(texts, ", "))
}

// unchecked resets conditions that do not fail to Progressing, because they describe the Seed before the operation.
func unchecked(conditions []corev1beta1.Condition, now time.Time) []corev1beta1.Condition {
	result := slices.Clone(conditions)
	for i, condition := range result {
		switch condition.Type {
		case corev1beta1.SeedBackupBucketsReady, corev1beta1.SeedExtensionsReady, corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy:
			if condition.Status != corev1beta1.ConditionFalse {
				next := condition
				next.Status = corev1beta1.ConditionProgressing
				result[i] = corev1beta1.KeepTimes(&condition, next, now)
			}
		}
	}
	return result
}

func sentence(text string) string {
	return flow.UpperFirst(strings.TrimSuffix(text, ".")) + "."
}
