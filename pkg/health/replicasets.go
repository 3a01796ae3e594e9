package health

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// checkReplicaSet implements the rules of gardener-resource-manager.
func checkReplicaSet(set *appsv1.ReplicaSet) Verdict {
	return checkReplicas("ReplicaSet", set.Generation, set.Status.ObservedGeneration, set.Spec.Replicas, set.Status.ReadyReplicas)
}

// checkReplicationController implements the rules of gardener-resource-manager.
func checkReplicationController(controller *corev1.ReplicationController) Verdict {
	return checkReplicas("ReplicationController", controller.Generation, controller.Status.ObservedGeneration,
		controller.Spec.Replicas, controller.Status.ReadyReplicas)
}

// checkReplicas checks controllers that keep a number of Pods without ever updating them. They have no rollouts.
func checkReplicas(kind string, generation, observed int64, wanted *int32, ready int32) Verdict {
	if detail := outdated(observed, generation); detail != "" {
		return Verdict{Unhealthy: detail, Unobserved: true}
	}
	if wanted != nil && ready < *wanted {
		return Verdict{Unhealthy: kind + " does not have minimum availability"}
	}
	return Verdict{}
}
