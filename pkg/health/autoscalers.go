package health

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// checkAutoscaler implements the rule of gardener-resource-manager for a VerticalPodAutoscaler.
func checkAutoscaler(autoscaler *conditioned) Verdict {
	return Verdict{Unhealthy: optional(autoscaler.Status.Conditions, "ConfigUnsupported", metav1.ConditionFalse)}
}
