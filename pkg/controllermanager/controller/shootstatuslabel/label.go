// Package shootstatuslabel maintains the label shoot.gardener.cloud/status of Shoots, which clients use to select Shoots by health.
package shootstatuslabel

import (
	"slices"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Values of the label, from best to worst.
const (
	healthy     = "healthy"
	progressing = "progressing"
	unknown     = "unknown"
	unhealthy   = "unhealthy"
)

// Of returns the value of the label: the worst value of the conditions and the last operation. A Shoot without an
// operation is healthy. While a Shoot is being created or deleted, its conditions are ignored. Constraints are always
// ignored. The rules are Gardener's.
func Of(status corev1beta1.ShootStatus) string {
	last := status.LastOperation
	if last == nil {
		return healthy
	}
	value := healthy
	switch {
	case last.Type == corev1beta1.LastOperationTypeCreate && last.State != corev1beta1.LastOperationStateSucceeded,
		last.Type == corev1beta1.LastOperationTypeDelete:
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

// ofErrors returns the value for the last errors.
func ofErrors(status corev1beta1.ShootStatus) string {
	if len(status.LastErrors) > 0 {
		return unhealthy
	}
	return healthy
}

// ofCondition returns the value for the status of a condition.
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

// worse returns the worse of two values.
func worse(a, b string) string {
	order := []string{healthy, progressing, unknown, unhealthy}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}
