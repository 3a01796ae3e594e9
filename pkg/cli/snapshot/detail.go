package snapshot

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// detailOf summarizes the state of an object in a few words. It is empty for kinds without a state.
func detailOf(obj runtime.Object) string {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return readiness(obj.Status.ReadyReplicas, ptr.Deref(obj.Spec.Replicas, 1))
	case *appsv1.ReplicaSet:
		return readiness(obj.Status.ReadyReplicas, ptr.Deref(obj.Spec.Replicas, 1))
	case *appsv1.StatefulSet:
		return readiness(obj.Status.ReadyReplicas, ptr.Deref(obj.Spec.Replicas, 1))
	case *appsv1.DaemonSet:
		return readiness(obj.Status.NumberReady, obj.Status.DesiredNumberScheduled)
	case *corev1.ReplicationController:
		return readiness(obj.Status.ReadyReplicas, ptr.Deref(obj.Spec.Replicas, 1))
	case *batchv1.Job:
		return fmt.Sprintf("%d/%d succeeded", obj.Status.Succeeded, ptr.Deref(obj.Spec.Completions, 1))
	case *autoscalingv2.HorizontalPodAutoscaler:
		return fmt.Sprintf("wants %d (%d to %d)", obj.Status.DesiredReplicas, ptr.Deref(obj.Spec.MinReplicas, 1), obj.Spec.MaxReplicas)
	case *discoveryv1.EndpointSlice:
		if len(obj.Endpoints) == 1 {
			return "1 endpoint"
		}
		return fmt.Sprintf("%d endpoints", len(obj.Endpoints))
	case *corev1.Service:
		return string(obj.Spec.Type)
	case *corev1.Pod:
		return podDetail(obj)
	}
	return ""
}

func readiness(ready, wanted int32) string { return fmt.Sprintf("%d/%d ready", ready, wanted) }

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

// stuckReason returns why a Pod does not run. It is empty if the Pod runs, or if its status does not contain a
// reason.
func stuckReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("%s: %s", condition.Reason, condition.Message)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case status.State.Waiting != nil && status.State.Waiting.Reason != "ContainerCreating" &&
			status.State.Waiting.Reason != "PodInitializing" && status.State.Waiting.Reason != "":
			return fmt.Sprintf("container %s: %s: %s", status.Name, status.State.Waiting.Reason, status.State.Waiting.Message)
		case status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
			ended := status.State.Terminated
			return fmt.Sprintf("container %s: ended with %s (exit code %d)", status.Name, ended.Reason, ended.ExitCode)
		}
	}
	if pod.Status.Reason != "" {
		return fmt.Sprintf("%s: %s", pod.Status.Reason, pod.Status.Message)
	}
	return ""
}
