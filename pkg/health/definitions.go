package health

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkDefinition implements the rules of gardener-resource-manager for a CustomResourceDefinition.
func checkDefinition(definition *conditioned) Verdict {
	conditions := definition.Status.Conditions
	return Verdict{Unhealthy: cmp.Or(
		required(conditions, "NamesAccepted"),
		required(conditions, "Established"),
		optional(conditions, "Terminating", metav1.ConditionFalse),
	)}
}
