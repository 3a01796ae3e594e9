// Package shootstatuslabel keeps the label shoot.gardener.cloud/status of Shoots, by which their health is selected.
package shootstatuslabel

import (
	"slices"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The values of the label, from good to bad.
const (
	healthy     = "healthy"
	progressing = "progressing"
	unknown     = "unknown"
	unhealthy   = "unhealthy"
)

// Of returns the value of the label: the worst of what the conditions and the last operation say. Before the first operation has begun a Shoot is healthy;
// while it is created or deleted its conditions do not count. Constraints never do. The rules are Gardener's.
func Of(status corev1beta1.ShootStatus) string {
	last := status.LastOperation
	if last == nil {
		return healthy
	}
	value := healthy
	switch {
	case last.Type == corev1beta1.LastOperationTypeCreate && last.State != corev1beta1.LastOperationStateSucceeded, last.Type == corev1beta1.LastOperationTypeDelete:
		return ofErrors(status)
	case last.State == corev1beta1.LastOperationStateProcessing:
		value = ofErrors(status)
	case last.State != corev1beta1.LastOperationStateSucceeded:
		value = unhealthy
	}
	for _, condition := range status.Conditions {
		value = worse(value, ofCondition(condition.Status))
	}
	return value
}

func ofErrors(status corev1beta1.ShootStatus) string {
	if len(status.LastErrors) > 0 {
		return unhealthy
	}
	return healthy
}

func ofCondition(status corev1beta1.ConditionStatus) string {
	switch status {
	case corev1beta1.ConditionTrue:
		return healthy
	case corev1beta1.ConditionProgressing:
		return progressing
	case corev1beta1.ConditionUnknown:
		return unknown
	}
	return unhealthy
}

func worse(a, b string) string {
	order := []string{healthy, progressing, unknown, unhealthy}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}
