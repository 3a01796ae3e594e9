package snapshot

import (
	"fmt"

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
