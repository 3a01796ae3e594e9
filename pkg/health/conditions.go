package health

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition is what the conditions of all kinds have in common (Kubernetes API conventions). Types of conditions that say
// when they were observed have ObservedGeneration set.
type condition struct {
	Type               string                 `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
	ObservedGeneration int64                  `json:"observedGeneration"`
}

// conditioned is an object with only its conditions.
type conditioned struct {
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// find returns the first condition of a type, nil if there is none.
func find(conditions []condition, conditionType string) *condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// expect says why the condition does not have a status; empty if it does. The text is gardener-resource-manager's.
func (c *condition) expect(status metav1.ConditionStatus) string {
	if c.Status == status {
		return ""
	}
	return fmt.Sprintf("condition %q has invalid status %s (expected %s) due to %s: %s",
		c.Type, c.Status, status, c.Reason, c.Message)
}

// required says why there is no condition of a type that is True; empty if there is.
func required(conditions []condition, conditionType string) string {
	if found := find(conditions, conditionType); found != nil {
		return found.expect(metav1.ConditionTrue)
	}
	return missing(conditionType)
}

// optional says why the condition of a type does not have a status; empty if it does, or is not there.
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

// outdated says that a status is about an older generation; empty if it is not. The text is gardener-resource-manager's.
func outdated(observed, generation int64) string {
	if observed < generation {
		return fmt.Sprintf(outdatedPrefix+" (%d/%d)", observed, generation)
	}
	return ""
}

// notUpdated says that replicas have not been updated; empty if enough have. The text is gardener-resource-manager's.
func notUpdated[T int32 | int64](updated, wanted T) string {
	if updated < wanted {
		return fmt.Sprintf("%d of %d replica(s) have been updated", updated, wanted)
	}
	return ""
}
