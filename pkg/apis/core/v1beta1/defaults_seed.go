package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaultsSeed sets the defaults of a Seed.
func SetDefaultsSeed(seed *Seed) { SetDefaultsSeedSpec(&seed.Spec) }

// SetDefaultsSeedSpec sets the defaults of a Seed's specification.
func SetDefaultsSeedSpec(spec *SeedSpec) {
	if len(spec.Networks.IPFamilies) == 0 {
		spec.Networks.IPFamilies = []IPFamily{IPFamilyIPv4}
	}
	settings := defaulting.Object(&spec.Settings)
	setDefaultsExcessCapacityReservation(defaulting.Object(&settings.ExcessCapacityReservation))
	defaulting.Pointer(&settings.Scheduling, SeedSettingScheduling{Visible: true})
	services := defaulting.Object(&settings.LoadBalancerServices)
	defaulting.Pointer(&defaulting.Object(&services.ZonalIngress).Enabled, true)
	defaulting.Pointer(&settings.VerticalPodAutoscaler, SeedSettingVerticalPodAutoscaler{Enabled: true})
	watchdog := defaulting.Object(&settings.DependencyWatchdog)
	defaulting.Pointer(&watchdog.Weeder, SeedSettingDependencyWatchdogWeeder{Enabled: true})
	defaulting.Pointer(&watchdog.Prober, SeedSettingDependencyWatchdogProber{Enabled: true})
	defaulting.Pointer(&settings.TopologyAwareRouting, SeedSettingTopologyAwareRouting{})
	defaulting.Pointer(&settings.PersistentVolumeClaimAutoscaler, SeedSettingPersistentVolumeClaimAutoscaler{})
}

func setDefaultsExcessCapacityReservation(reservation *SeedSettingExcessCapacityReservation) {
	if !ptr.Deref(reservation.Enabled, true) || len(reservation.Configs) > 0 {
		return
	}
	reservation.Configs = []SeedSettingExcessCapacityReservationConfig{{Resources: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("6Gi"),
	}}}
}
