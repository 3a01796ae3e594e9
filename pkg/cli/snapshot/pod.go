package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/health"
)

// startingReasons are the reasons of containers that are about to start.
var startingReasons = []string{"", "ContainerCreating", "PodInitializing"}

// podDetail returns why a Pod does not run, or its node and its number of restarts.
func podDetail(pod *corev1.Pod) string {
	if reason := stuckReason(pod); reason != "" {
		return reason
	}
	if pod.Spec.NodeName == "" {
		return string(pod.Status.Phase)
	}
	text := fmt.Sprintf("%s on %s", pod.Status.Phase, pod.Spec.NodeName)
	restarts := int32(0)
	for _, status := range pod.Status.ContainerStatuses {
		restarts += status.RestartCount
	}
	if restarts > 0 {
		text += fmt.Sprintf(", restarted %d times", restarts)
	}
	return text
}

// runningPod returns the health of a Pod that counts as healthy by its phase. The phase remains Running while containers
// crash, and the resource-manager judges no more than the phase: it takes crashes from the workload that owns the Pod.
// The command shows the Pod too, which names their cause.
func runningPod(pod *corev1.Pod) health.Verdict {
	if pod.Status.Phase != corev1.PodRunning {
		return health.Verdict{}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionFalse && condition.Reason != "PodCompleted" {
			if reason := stuckReason(pod); reason != "" {
				return health.Verdict{Unhealthy: reason}
			}
			return health.Verdict{Progressing: "it is not ready: " + cmp.Or(condition.Message, condition.Reason, "without a reason")}
		}
	}
	return health.Verdict{}
}

// stuckReason returns why a Pod does not run. It is empty if the Pod runs, or if its status does not contain a
// reason.
func stuckReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("%s: %s", condition.Reason, condition.Message)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if reason := containerReason(status); reason != "" {
			return fmt.Sprintf("container %s: %s", status.Name, reason)
		}
	}
	if pod.Status.Reason != "" {
		return fmt.Sprintf("%s: %s", pod.Status.Reason, pod.Status.Message)
	}
	return ""
}

// containerReason returns why a container does not run. It is empty if the container runs and is ready, starts, or has
// completed. A container that was just restarted counts until it is ready, because it is most likely to crash again.
func containerReason(status corev1.ContainerStatus) string {
	last := status.LastTerminationState.Terminated
	switch {
	case status.State.Waiting != nil && !slices.Contains(startingReasons, status.State.Waiting.Reason):
		reason := fmt.Sprintf("%s: %s", status.State.Waiting.Reason, status.State.Waiting.Message)
		if failed(last) {
			reason += "; it last " + ending(last)
		}
		return reason
	case failed(status.State.Terminated):
		return ending(status.State.Terminated)
	case status.State.Running != nil && !status.Ready && failed(last):
		return fmt.Sprintf("restarted %d times, and not ready: it last %s", status.RestartCount, ending(last))
	}
	return ""
}

func failed(ended *corev1.ContainerStateTerminated) bool { return ended != nil && ended.ExitCode != 0 }

// ending describes how a container ended, with the message that it left.
func ending(ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with %s (exit code %d)", cmp.Or(ended.Reason, "an error"), ended.ExitCode)
	if ended.Message != "" {
		text += ": " + ended.Message
	}
	return text
}
