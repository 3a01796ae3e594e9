package health

import (
	"cmp"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oldPodsRemain is the text of gardener-resource-manager.
const oldPodsRemain = "there are still non-terminated old pods"

// checkDeployment implements the rules of gardener-resource-manager, with two differences. Replicas that do not exist
// yet do not count as old Pods. Pods are not counted if the Deployment reports status.terminatingReplicas (Kubernetes
// 1.35 or later).
func checkDeployment(deployment *appsv1.Deployment) Verdict {
	if detail := outdated(deployment.Status.ObservedGeneration, deployment.Generation); detail != "" {
		return unobserved(detail)
	}
	conditions := make([]condition, 0, len(deployment.Status.Conditions))
	for _, c := range deployment.Status.Conditions {
		conditions = append(conditions, condition{
			Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		})
	}
	verdict := Verdict{
		Unhealthy: cmp.Or(
			required(conditions, string(appsv1.DeploymentAvailable)),
			optional(conditions, string(appsv1.DeploymentProgressing), metav1.ConditionTrue),
			optional(conditions, string(appsv1.DeploymentReplicaFailure), metav1.ConditionFalse),
		),
		Progressing: cmp.Or(rollout(deployment, conditions), surplus(deployment)),
	}
	if verdict.Progressing == "" && deployment.Status.TerminatingReplicas == nil {
		verdict.OldPods, verdict.Err = podsOf(deployment)
	}
	return verdict
}

// rollout returns an explanation if the rollout of the current template is not complete, and "" if it is.
func rollout(deployment *appsv1.Deployment, conditions []condition) string {
	const done = "NewReplicaSetAvailable" // the reason that the deployment controller sets
	progressing := find(conditions, string(appsv1.DeploymentProgressing))
	switch {
	case progressing == nil && hasDeadline(deployment):
		return missing(string(appsv1.DeploymentProgressing))
	case progressing != nil && (progressing.Status != metav1.ConditionTrue || progressing.Reason != done):
		return cmp.Or(progressing.Message, progressing.expect(metav1.ConditionTrue),
			fmt.Sprintf("condition %q has reason %q", progressing.Type, progressing.Reason))
	}
	status := deployment.Status
	return notUpdated(min(status.UpdatedReplicas, status.Replicas), replicasOf(deployment.Spec.Replicas))
}

// hasDeadline reports whether the deployment controller maintains the condition Progressing. It does not if the
// deadline is MaxInt32, which means no deadline.
func hasDeadline(deployment *appsv1.Deployment) bool {
	deadline := deployment.Spec.ProgressDeadlineSeconds
	return deadline == nil || *deadline != math.MaxInt32
}

// surplus returns an explanation if there are more Pods than wanted. It needs status.terminatingReplicas and returns ""
// without it.
func surplus(deployment *appsv1.Deployment) string {
	terminating := deployment.Status.TerminatingReplicas
	if terminating == nil {
		return ""
	}
	if *terminating > 0 || deployment.Status.Replicas > replicasOf(deployment.Spec.Replicas) {
		return oldPodsRemain
	}
	return ""
}

// podsOf returns the Pods of a Deployment to count, or an explanation if its selector is invalid. It counts nothing for
// an empty selector, which would select all Pods of the namespace. The API server rejects empty selectors.
func podsOf(deployment *appsv1.Deployment) (PodCount, string) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return PodCount{}, fmt.Sprintf("the field spec.selector is invalid: %v", err)
	}
	if selector.String() == "" {
		return PodCount{}, ""
	}
	return PodCount{Selector: selector.String(), Replicas: replicasOf(deployment.Spec.Replicas)}, ""
}

// replicasOf returns the number of wanted replicas. The default is 1, as in the API server.
func replicasOf[T int32 | int64](replicas *T) T {
	if replicas == nil {
		return 1
	}
	return max(*replicas, 0)
}
