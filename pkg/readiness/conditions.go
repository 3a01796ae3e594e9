package readiness

import (
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// messageEvery is the minimum interval between writes of a condition's message while its status is unchanged.
const messageEvery = 10 * time.Second

// Delay returns how long to delay a write of a condition whose message alone has changed, because the message changes often while
// components start. before is nil if the condition is new. changes is when the status changes without an event; zero for never. It
// returns 0 if the condition must be written now.
func Delay(before *corev1beta1.Condition, next corev1beta1.Condition, changes, now time.Time) time.Duration {
	if before == nil || before.Status != next.Status || before.LastUpdateTime.Equal(&next.LastUpdateTime) {
		return 0
	}
	later := max(before.LastUpdateTime.Add(messageEvery).Sub(now), 0)
	if !changes.IsZero() {
		later = min(later, max(changes.Sub(now), 0))
	}
	return later
}

// Threshold returns how long a failing condition is Progressing before it becomes False; 0 for immediately.
func Threshold(thresholds []gardenletv1alpha1.ConditionThreshold, kind corev1beta1.ConditionType) time.Duration {
	for _, threshold := range thresholds {
		if threshold.Type == string(kind) {
			return threshold.Duration.Duration
		}
	}
	return 0
}

// Condition returns a condition from the result of a check: True with the reason and message of success, or the problem, which is
// Progressing until the threshold has passed. before is the condition as it is, or nil. The time is when the condition changes without an
// event; zero for never.
func Condition(
	before *corev1beta1.Condition, success corev1beta1.Condition, problem *Problem, last *corev1beta1.LastOperation,
	threshold time.Duration, now time.Time,
) (corev1beta1.Condition, time.Time) {
	if problem == nil {
		success.Status = corev1beta1.ConditionTrue
		return corev1beta1.KeepTimes(before, success, now), time.Time{}
	}
	status, next := corev1beta1.StatusOfFailure(before, problem.Reason, last, threshold, now)
	return corev1beta1.KeepTimes(before, corev1beta1.Condition{
		Type: success.Type, Status: status, Reason: problem.Reason, Message: problem.Message, Codes: problem.Codes,
	}, now), next
}
