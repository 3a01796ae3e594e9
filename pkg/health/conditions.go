package health

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition has the fields that conditions of all kinds share (Kubernetes API conventions). ObservedGeneration is 0 for
// types of conditions without that field.
type condition struct {
	Type               string                 `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
	ObservedGeneration int64                  `json:"observedGeneration"`
}

// conditioned is an object reduced to its conditions.
type conditioned struct {
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// find returns the first condition of a type, or nil.
func find(conditions []condition, conditionType string) *condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// expect returns an explanation if the condition does not have the given status, and "" if it does. The text is that of
// gardener-resource-manager.
func (c *condition) expect(status metav1.ConditionStatus) string {
	if c.Status == status {
		return ""
	}
	return fmt.Sprintf("condition %q has invalid status %s (expected %s) due to %s: %s",
		c.Type, c.Status, status, c.Reason, c.Message)
}

// required returns an explanation if the condition of a type is missing or not True, and "" otherwise.
func required(conditions []condition, conditionType string) string {
	if found := find(conditions, conditionType); found != nil {
		return found.expect(metav1.ConditionTrue)
	}
	return missing(conditionType)
}

// optional returns an explanation if the condition of a type exists with a different status, and "" otherwise.
func optional(conditions []condition, conditionType string, status metav1.ConditionStatus) string {
	if found := find(conditions, conditionType); found != nil {
		return found.expect(status)
	}
	return ""
}

func missing(conditionType string) string {
	return fmt.Sprintf("condition %q is missing", conditionType)
}

const outdatedPrefix = "observed generation outdated"

// outdated returns an explanation if a status refers to an older generation, and "" if it does not. The text is that of
// gardener-resource-manager.
func outdated(observed, generation int64) string {
	if observed < generation {
		return fmt.Sprintf(outdatedPrefix+" (%d/%d)", observed, generation)
	}
	return ""
}

// notUpdated returns an explanation if fewer replicas than wanted have been updated, and "" otherwise. The text is that
// of gardener-resource-manager.
func notUpdated[T int32 | int64](updated, wanted T) string {
	if updated < wanted {
		return fmt.Sprintf("%d of %d replica(s) have been updated", updated, wanted)
	}
	return ""
}
