// Package shootretry retries the operations of Shoots that failed because an infrastructure limits the rate of requests.
package shootretry

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// Periods define when operations are retried.
type Periods struct {
	// Retry is how long after its failure an operation is retried.
	Retry time.Duration
	// Jitter is how much later at most, so that not all Shoots of an infrastructure are retried together.
	Jitter time.Duration
}

// Decide returns when the operation of a Shoot is retried, which may have passed, and false if it is not: it did not fail,
// or for another reason, or the specification was changed since, which starts an operation anyway.
func Decide(shoot *corev1beta1.Shoot, periods Periods) (time.Time, bool) {
	last := shoot.Status.LastOperation
	if last == nil || last.State != corev1beta1.LastOperationStateFailed || shoot.Generation != shoot.Status.ObservedGeneration ||
		!slices.ContainsFunc(shoot.Status.LastErrors, isRateLimit) {
		return time.Time{}, false
	}
	return last.LastUpdateTime.Add(periods.Retry + delay(shoot.UID, periods.Jitter)), true
}

func isRateLimit(failure corev1beta1.LastError) bool {
	return slices.Contains(failure.Codes, corev1beta1.ErrorInfraRateLimitsExceeded)
}

// delay returns whole seconds, less than the jitter, which depend only on the UID.
func delay(uid types.UID, jitter time.Duration) time.Duration {
	const perMinute = 60 // Spread returns minutes
	return maintenance.Spread(uid, jitter*perMinute) / perMinute
}

// Keep copies the fields on which decisions depend into a cached Shoot.
func Keep(into, shoot *corev1beta1.Shoot) {
	into.Generation, into.Status.ObservedGeneration = shoot.Generation, shoot.Status.ObservedGeneration
	last := shoot.Status.LastOperation
	if last == nil || last.State != corev1beta1.LastOperationStateFailed {
		return
	}
	if into.Status.LastOperation == nil {
		into.Status.LastOperation = &corev1beta1.LastOperation{Type: last.Type, State: last.State}
	}
	into.Status.LastOperation.LastUpdateTime = last.LastUpdateTime
	if slices.ContainsFunc(shoot.Status.LastErrors, isRateLimit) {
		into.Status.LastErrors = []corev1beta1.LastError{{Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraRateLimitsExceeded}}}
	}
}
