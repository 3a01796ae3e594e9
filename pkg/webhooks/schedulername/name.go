package schedulername

import (
	corev1 "k8s.io/api/core/v1"
)

// setScheduler sets the scheduler of a Pod that did not choose one. The API server has set the default one before it asks webhooks,
// so that a Pod that chose the default scheduler cannot be distinguished from one without a choice.
func setScheduler(spec *corev1.PodSpec, schedulerName string) {
	if spec.SchedulerName == "" || spec.SchedulerName == corev1.DefaultSchedulerName {
		spec.SchedulerName = schedulerName
	}
}
