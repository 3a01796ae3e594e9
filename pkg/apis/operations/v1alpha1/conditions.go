package v1alpha1

import (
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The types of conditions of a Bastion.
const (
	// BastionReady reports whether the host can be reached.
	BastionReady gardencorev1beta1.ConditionType = "BastionReady"
)
