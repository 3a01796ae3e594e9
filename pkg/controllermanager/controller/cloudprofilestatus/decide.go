package cloudprofilestatus

import (
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Decide returns the status of a CloudProfile at a time, and the next time at which it changes; zero if it does not.
func Decide(spec *corev1beta1.CloudProfileSpec, now time.Time) (corev1beta1.CloudProfileStatus, time.Time) {
	var next time.Time
	classify := func(version *corev1beta1.ExpirableVersion) corev1beta1.ExpirableVersionStatus {
		next = requeue.Earlier(next, nextChange(version, now))
		return corev1beta1.ExpirableVersionStatus{Version: version.Version, Classification: version.ClassificationAt(now)}
	}
	status := corev1beta1.CloudProfileStatus{Kubernetes: &corev1beta1.KubernetesStatus{}}
	for i := range spec.Kubernetes.Versions {
		status.Kubernetes.Versions = append(status.Kubernetes.Versions, classify(&spec.Kubernetes.Versions[i]))
	}
	for i := range spec.MachineImages {
		image := corev1beta1.MachineImageStatus{Name: spec.MachineImages[i].Name}
		for j := range spec.MachineImages[i].Versions {
			image.Versions = append(image.Versions, classify(&spec.MachineImages[i].Versions[j].ExpirableVersion))
		}
		status.MachineImages = append(status.MachineImages, image)
	}
	return status, next
}

// nextChange returns the next time at which the classification of a version may change; zero if it does not.
func nextChange(version *corev1beta1.ExpirableVersion, now time.Time) time.Time {
	var next time.Time
	if version.ExpirationDate != nil && version.ExpirationDate.After(now) {
		next = version.ExpirationDate.Time
	}
	for _, stage := range version.Lifecycle {
		if stage.StartTime != nil && stage.StartTime.After(now) {
			next = requeue.Earlier(next, stage.StartTime.Time)
		}
	}
	return next
}
