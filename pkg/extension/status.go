package extension

import (
	"cmp"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// The progress of operations, in percent.
	progressBegun, progressRunning, progressFinished = 1, 50, 100
	// maxDescription is the most that a description in a status has, in bytes.
	maxDescription = 4096
	// finalRetry is when an operation is tried again whose error only people can change: they may have done so in the infrastructure,
	// which no watch shows.
	finalRetry = 10 * time.Minute
)

// final are the codes of errors that trying again does not help against (Gardener).
var final = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraQuotaExceeded,
	corev1beta1.ErrorInfraRateLimitsExceeded, corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorProblematicWebhook,
}

func isFinal(codes []corev1beta1.ErrorCode) bool {
	return slices.ContainsFunc(codes, func(code corev1beta1.ErrorCode) bool { return slices.Contains(final, code) })
}

// reportBegun says in the status that an operation has begun.
func reportBegun(object extensionsv1alpha1.Object, operation corev1beta1.LastOperationType, now time.Time) {
	object.GetExtensionStatus().LastOperation = &corev1beta1.LastOperation{
		Type: operation, State: corev1beta1.LastOperationStateProcessing, Progress: progressBegun,
		Description: string(operation) + " has begun", LastUpdateTime: metav1.NewTime(now),
	}
}

// report says in the status how far an operation is. Its times move with its content only, so that repeating it writes nothing.
func report(object extensionsv1alpha1.Object, operation corev1beta1.LastOperationType, result Result, failed error, now time.Time) {
	status := object.GetExtensionStatus()
	status.ObservedGeneration = object.GetGeneration()
	next := corev1beta1.LastOperation{
		Type: operation, State: corev1beta1.LastOperationStateSucceeded, Progress: progressFinished, Description: string(operation) + " has succeeded",
	}
	var lastError *corev1beta1.LastError
	switch {
	case failed != nil:
		next.State, next.Progress = corev1beta1.LastOperationStateError, progressRunning
		next.Description = description(failed.Error())
		lastError = &corev1beta1.LastError{Description: next.Description, Codes: Codes(failed)}
	case result.Waiting != "":
		next.State, next.Progress = corev1beta1.LastOperationStateProcessing, cmp.Or(result.Progress, progressRunning)
		next.Description = description(result.Waiting)
	}
	status.LastOperation = keepTime(status.LastOperation, next, now)
	status.LastError = keepErrorTime(status.LastError, lastError, now)
}

func keepTime(before *corev1beta1.LastOperation, next corev1beta1.LastOperation, now time.Time) *corev1beta1.LastOperation {
	next.LastUpdateTime = metav1.NewTime(now)
	if before != nil {
		same := next
		same.LastUpdateTime = before.LastUpdateTime
		if same == *before {
			return &same
		}
	}
	return &next
}

func keepErrorTime(before, next *corev1beta1.LastError, now time.Time) *corev1beta1.LastError {
	if next == nil {
		return nil
	}
	next.LastUpdateTime = ptr.To(metav1.NewTime(now))
	if before != nil && before.Description == next.Description && slices.Equal(before.Codes, next.Codes) {
		next.LastUpdateTime = before.LastUpdateTime
	}
	return next
}

// description returns a text that begins with an upper-case letter and is not too long for a status.
func description(text string) string {
	if len(text) > maxDescription {
		text = text[:maxDescription]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
