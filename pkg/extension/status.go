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
	// Progress of operations, in percent.
	progressBegun, progressRunning, progressFinished = 1, 50, 100
	// maxDescription limits the length of a description in a status, in bytes.
	maxDescription = 4096
	// finalRetry is the delay of a retry after an error that only users can resolve. They may do so in the infrastructure,
	// which cannot be watched.
	finalRetry = 10 * time.Minute
)

// final are the codes of errors for which a retry cannot help (Gardener).
var final = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraQuotaExceeded,
	corev1beta1.ErrorInfraRateLimitsExceeded, corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorProblematicWebhook,
}

func isFinal(codes []corev1beta1.ErrorCode) bool {
	return slices.ContainsFunc(codes, func(code corev1beta1.ErrorCode) bool { return slices.Contains(final, code) })
}

// reportBegun sets the last operation when an operation starts.
func reportBegun(object extensionsv1alpha1.Object, operation corev1beta1.LastOperationType, now time.Time) {
	object.GetExtensionStatus().LastOperation = &corev1beta1.LastOperation{
		Type: operation, State: corev1beta1.LastOperationStateProcessing, Progress: progressBegun,
		Description: string(operation) + " has started", LastUpdateTime: metav1.NewTime(now),
	}
}

// report sets the last operation and error. Timestamps change only with the content, so that a repetition writes nothing.
func report(object extensionsv1alpha1.Object, operation corev1beta1.LastOperationType, result Result, failed error, now time.Time) {
	status := object.GetExtensionStatus()
	status.ObservedGeneration = object.GetGeneration()
	next := corev1beta1.LastOperation{
		Type: operation, State: corev1beta1.LastOperationStateSucceeded, Progress: progressFinished,
		Description: string(operation) + " has succeeded",
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
	status.LastOperation = corev1beta1.KeepTime(status.LastOperation, next, now)
	status.LastError = keepErrorTime(status.LastError, lastError, now)
}

// keepErrorTime returns the next error, with the timestamp of the previous one if it is unchanged.
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

// description returns a text that starts with an upper-case letter and is truncated to maxDescription.
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
