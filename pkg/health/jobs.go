package health

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkJob implements the rule of gardener-resource-manager: a Job is healthy unless it failed.
func checkJob(job *batchv1.Job) Verdict {
	conditions := make([]condition, 0, len(job.Status.Conditions))
	for _, c := range job.Status.Conditions {
		conditions = append(conditions, condition{
			Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		})
	}
	return Verdict{Unhealthy: optional(conditions, string(batchv1.JobFailed), metav1.ConditionFalse)}
}
