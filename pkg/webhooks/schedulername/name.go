package schedulername

import (
	corev1 "k8s.io/api/core/v1"
)

// setScheduler sets the scheduler of a Pod that does not choose one. The API server sets the default scheduler before it
// calls webhooks, so a Pod that chooses the default scheduler cannot be distinguished from one without a choice.
func setScheduler(spec *corev1.PodSpec, schedulerName string) {
	if spec.SchedulerName == "" || spec.SchedulerName == corev1.DefaultSchedulerName {
		spec.SchedulerName = schedulerName
	}
}
