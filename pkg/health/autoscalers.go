package health

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// uncheckedTarget begins the message of the condition ConfigUnsupported while the recommender could not read the target, for example because it
// looked for it before it was created. The recommender remembers that for minutes, in which the target and its requests are as they should be.
const uncheckedTarget = "Unknown error during checking if target "

// checkAutoscaler implements the rule of gardener-resource-manager for a VerticalPodAutoscaler, except that a target that has not been checked
// is not unsupported.
func checkAutoscaler(autoscaler *conditioned) Verdict {
	const unsupported = "ConfigUnsupported"
	if found := find(autoscaler.Status.Conditions, unsupported); found != nil && strings.HasPrefix(found.Message, uncheckedTarget) {
		return Verdict{}
	}
	return Verdict{Unhealthy: optional(autoscaler.Status.Conditions, unsupported, metav1.ConditionFalse)}
}
