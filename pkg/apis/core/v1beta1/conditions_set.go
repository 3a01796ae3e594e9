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
