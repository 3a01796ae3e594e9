package v1alpha1

import (
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The types of conditions of a ManagedSeed and of a Gardenlet.
const (
	// ManagedSeedShootReconciled reports whether the Shoot is reconciled.
	ManagedSeedShootReconciled gardencorev1beta1.ConditionType = "ShootReconciled"
	// SeedRegistered reports whether the Seed is registered.
	SeedRegistered gardencorev1beta1.ConditionType = "SeedRegistered"
	// GardenletReconciled reports whether the gardenlet is deployed.
	GardenletReconciled gardencorev1beta1.ConditionType = "GardenletReconciled"
)
