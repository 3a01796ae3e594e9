package seed

import (
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Inactive returns the components and settings of a Seed that this version accepts but does not implement.
func Inactive(seed *corev1beta1.Seed) []string {
	var inactive []string
	note := func(requested bool, what string) {
		if requested {
			inactive = append(inactive, what)
		}
	}
	settings := corev1beta1.SeedSettings{}
	if seed.Spec.Settings != nil {
		settings = *seed.Spec.Settings
	}
	watchdog := settings.DependencyWatchdog
	note(true, "logging and monitoring")
	inactive = append(inactive, inactiveExposure(seed)...)
	note(watchdog == nil || watchdog.Weeder == nil || watchdog.Weeder.Enabled, "spec.settings.dependencyWatchdog.weeder")
	note(watchdog == nil || watchdog.Prober == nil || watchdog.Prober.Enabled, "spec.settings.dependencyWatchdog.prober")
	volumes := settings.PersistentVolumeClaimAutoscaler
	note(volumes != nil && volumes.Enabled, "spec.settings.persistentVolumeClaimAutoscaler")
	return inactive
}
