package health

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// checkPod implements the rule of gardener-resource-manager.
func checkPod(pod *corev1.Pod) Verdict {
	valid := []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded}
	if slices.Contains(valid, pod.Status.Phase) {
		return Verdict{}
	}
	return Verdict{Unhealthy: fmt.Sprintf("pod is in invalid phase %q (expected one of %q)", pod.Status.Phase, valid)}
}

// RelevantPod reports whether a Pod counts for a Deployment, see PodCount. Pods that have ended, were evicted or were
// rejected by their node remain as objects only and do not count (as in gardener-resource-manager).
func RelevantPod(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if strings.HasPrefix(pod.Status.Reason, "OutOf") { // such as OutOfcpu, from the kubelet
		return false
	}
	for _, reason := range []string{"Evicted", "NodeAffinity", "NodeLost", "Preempting"} {
		if strings.Contains(pod.Status.Reason, reason) {
			return false
		}
	}
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		completed := c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.Reason == "PodCompleted"
		disrupted := c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		return completed || disrupted
	})
}
