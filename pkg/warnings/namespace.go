package warnings

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// OfNamespace returns why a Namespace that is being deleted still exists: what the conditions of its status
// say, or its finalizers. It is empty if neither says anything.
func OfNamespace(namespace *corev1.Namespace) string {
	var reasons []string
	for _, condition := range namespace.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Message != "" {
			reasons = append(reasons, strings.TrimSuffix(condition.Message, "."))
		}
	}
	if len(reasons) == 0 {
		for _, finalizer := range namespace.Spec.Finalizers {
			if finalizer != corev1.FinalizerKubernetes {
				reasons = append(reasons, "its finalizer "+string(finalizer)+" in spec.finalizers blocks the deletion")
			}
		}
	}
	return strings.Join(reasons, "; ")
}
