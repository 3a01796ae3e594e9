package health

import (
	"cmp"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oldPodsRemain is gardener-resource-manager's text.
const oldPodsRemain = "there are still non-terminated old pods"

// checkDeployment has the rules of gardener-resource-manager. Beyond them, replicas that do not exist yet are not old Pods,
// and Pods need not be counted where the Deployment does it (status.terminatingReplicas, as of Kubernetes 1.35).
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

// rollout says what of the rollout of the present template is missing; empty if nothing is.
func rollout(deployment *appsv1.Deployment, conditions []condition) string {
	const done = "NewReplicaSetAvailable" // the reason that the deployment controller gives
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

// hasDeadline reports whether the deployment controller maintains the condition Progressing, which it does not for the
// deadline that stands for none.
func hasDeadline(deployment *appsv1.Deployment) bool {
	deadline := deployment.Spec.ProgressDeadlineSeconds
	return deadline == nil || *deadline != math.MaxInt32
}

// surplus says that there are more Pods than there have to be, as far as the status counts all of them.
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

// podsOf names the Pods of a Deployment, or says why they cannot be named. An empty selector names none, lest it select
// all Pods of the namespace; the API server admits none.
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

// replicasOf returns how many replicas are wanted: 1 if nothing is said, as the API server defaults it.
func replicasOf[T int32 | int64](replicas *T) T {
	if replicas == nil {
		return 1
	}
	return max(*replicas, 0)
}
