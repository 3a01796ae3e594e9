package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Statement is the content of a condition.
type Statement struct {
	Status ConditionStatus
	// Reason is a machine-readable word, Message a human-readable text.
	Reason, Message string
}

// NewStatement returns a statement.
func NewStatement(status ConditionStatus, reason, message string) Statement {
	return Statement{Status: status, Reason: reason, Message: message}
}

// ConditionOf returns the condition of a type, with status Unknown if there is none.
func ConditionOf(conditions []Condition, conditionType ConditionType) Condition {
	for _, condition := range conditions {
		if condition.Type == conditionType {
			return condition
		}
	}
	return Condition{Type: conditionType, Status: ConditionUnknown}
}

// SetCondition returns the conditions with one of them set. As in all Gardener conditions, the transition time changes
// with the status, and the update time with the status, reason or message.
func SetCondition(conditions []Condition, conditionType ConditionType, statement Statement, now time.Time) []Condition {
	updated := Condition{
		Type: conditionType, Status: statement.Status, Reason: statement.Reason, Message: statement.Message,
		LastTransitionTime: metav1.NewTime(now), LastUpdateTime: metav1.NewTime(now),
	}
	conditions = slices.Clone(conditions)
	i := slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return append(conditions, updated)
	}
	old := conditions[i]
	if old.Status == updated.Status {
		updated.LastTransitionTime = old.LastTransitionTime
		if old.Reason == updated.Reason && old.Message == updated.Message {
			updated.LastUpdateTime = old.LastUpdateTime
		}
	}
	conditions[i] = updated
	return conditions
}

// SetReady returns the conditions with Ready set to a summary of the others: False if the objects could not be applied
// or are not healthy, Unknown while they are being applied, rolled out or not checked yet, and True otherwise.
func SetReady(conditions []Condition, now time.Time) []Condition {
	return SetCondition(conditions, Ready, readiness(conditions), now)
}

func readiness(conditions []Condition) Statement {
	applied := ConditionOf(conditions, ResourcesApplied)
	healthy := ConditionOf(conditions, ResourcesHealthy)
	progressing := ConditionOf(conditions, ResourcesProgressing)
	switch {
	case applied.Status == ConditionProgressing:
		return Statement{ConditionUnknown, applied.Reason, applied.Message} // other tools do not know the status Progressing
	case applied.Status != ConditionTrue:
		return statementOf(applied)
	case healthy.Status == ConditionFalse:
		return statementOf(healthy)
	case progressing.Status == ConditionTrue:
		return Statement{ConditionUnknown, progressing.Reason, progressing.Message}
	case healthy.Status != ConditionTrue && healthy.Reason != "":
		return statementOf(healthy)
	case progressing.Status != ConditionFalse && progressing.Reason != "":
		return statementOf(progressing)
	}
	return statementOf(applied)
}

func statementOf(condition Condition) Statement {
	return Statement{condition.Status, condition.Reason, condition.Message}
}
