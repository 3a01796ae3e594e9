package v1beta1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FindCondition returns the condition of a type in a list, or nil if there is none.
func FindCondition(conditions []Condition, conditionType ConditionType) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// SetCondition returns a copy of a list in which a condition is added or replaces the one of its type.
func SetCondition(conditions []Condition, condition Condition) []Condition {
	conditions = slices.Clone(conditions)
	if existing := FindCondition(conditions, condition.Type); existing != nil {
		*existing = condition
		return conditions
	}
	return append(conditions, condition)
}

// RemoveCondition returns a copy of a list without the condition of a type.
func RemoveCondition(conditions []Condition, conditionType ConditionType) []Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(condition Condition) bool { return condition.Type == conditionType })
}

// KeepTimes returns a condition with updated times, as for all Gardener conditions. The transition time changes with the
// status, the update time with any change. before is the condition that it replaces, or nil if it is new.
func KeepTimes(before *Condition, condition Condition, now time.Time) Condition {
	condition.LastTransitionTime, condition.LastUpdateTime = metav1.NewTime(now), metav1.NewTime(now)
	if before == nil || before.Status != condition.Status {
		return condition
	}
	condition.LastTransitionTime = before.LastTransitionTime
	if before.Reason == condition.Reason && before.Message == condition.Message && slices.Equal(before.Codes, condition.Codes) {
		condition.LastUpdateTime = before.LastUpdateTime
	}
	return condition
}

// KeepTime returns a last operation whose time changes only with its content, so that a repeated report writes nothing. before
// is the operation that it replaces, or nil if there is none. The time of next is ignored.
func KeepTime(before *LastOperation, next LastOperation, now time.Time) *LastOperation {
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

// StatusOfFailure returns Progressing while the failure of a check is younger than a threshold, and the end of this time.
// Otherwise it returns False and the zero time. before is the condition that reports the failure, or nil if it is new. A
// failure with another reason is a new one. After the success of an operation, components may need this time again.
func StatusOfFailure(
	before *Condition, reason string, last *LastOperation, threshold time.Duration, now time.Time,
) (ConditionStatus, time.Time) {
	if threshold <= 0 || before == nil {
		return ConditionFalse, time.Time{}
	}
	var until time.Time
	if last != nil && last.State == LastOperationStateSucceeded {
		until = last.LastUpdateTime.Add(threshold)
	}
	switch {
	case before.Status == ConditionTrue, before.Status == ConditionFalse && before.Reason != reason:
		until = now.Add(threshold)
	case before.Status == ConditionProgressing:
		if since := before.LastTransitionTime.Add(threshold); since.After(until) {
			until = since
		}
	}
	if now.Before(until) {
		return ConditionProgressing, until
	}
	return ConditionFalse, time.Time{}
}

// DelayFailure returns the status of a check of a Seed that fails. While a condition that was True has failed for less than a
// threshold, it is Progressing, and next is the end of this time. Otherwise it is the given status. before is nil if it is new.
func DelayFailure(before *Condition, final ConditionStatus, threshold time.Duration, now time.Time) (status ConditionStatus, next time.Time) {
	if before == nil || threshold <= 0 {
		return final, time.Time{}
	}
	switch before.Status {
	case ConditionTrue:
		return ConditionProgressing, now.Add(threshold)
	case ConditionProgressing:
		if until := before.LastTransitionTime.Add(threshold); now.Before(until) {
			return ConditionProgressing, until
		}
	}
	return final, time.Time{}
}
