package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// scaledFeatures are the feature gates of the Vertical Pod Autoscaler.
var scaledFeatures = []string{"CPUStartupBoost", "InPlace", "PerVPAConfig"}

func validateSeedSettings(settings *v1beta1.SeedSettings, zones []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if reservation := settings.ExcessCapacityReservation; reservation != nil {
		for i, config := range reservation.Configs {
			at := path.Child("excessCapacityReservation", "configs").Index(i).Child("resources")
			if len(config.Resources) == 0 {
				errs = append(errs, field.Required(at, ""))
			}
			errs = append(errs, resources(config.Resources, at)...)
		}
	}
	if services := settings.LoadBalancerServices; services != nil {
		errs = append(errs, validateLoadBalancers(services, zones, path.Child("loadBalancerServices"))...)
	}
	if scaler := settings.VerticalPodAutoscaler; scaler != nil {
		errs = append(errs, verticalFeatures(scaler.FeatureGates, path.Child("verticalPodAutoscaler", "featureGates"))...)
		errs = append(errs, cpuAndMemory(scaler.MaxAllowed, path.Child("verticalPodAutoscaler", "maxAllowed"))...)
	}
	if routing := settings.TopologyAwareRouting; routing != nil && routing.Enabled && len(zones) < 2 {
		errs = append(errs, field.Forbidden(path.Child("topologyAwareRouting", "enabled"), "needs at least two zones in spec.provider.zones"))
	}
	if selection := settings.ZoneSelection; selection != nil {
		errs = append(errs, oneOf(selection.Mode, path.Child("zoneSelection", "mode"), v1beta1.ZoneSelectionModePrefer,
			v1beta1.ZoneSelectionModeEnforce)...)
		errs = append(errs, forbidden(len(zones) == 0, path.Child("zoneSelection"), "needs zones in spec.provider.zones")...)
	}
	return errs
}

func validateLoadBalancers(services *v1beta1.SeedSettingLoadBalancerServices, zones []string, path *field.Path) field.ErrorList {
	errs := trafficPolicy(services.ExternalTrafficPolicy, path.Child("externalTrafficPolicy"))
	if services.Class != nil {
		errs = append(errs, messages(validation.IsQualifiedName(*services.Class), *services.Class, path.Child("class"))...)
	}
	at := path.Child("zones")
	errs = append(errs, forbidden(len(services.Zones) > 0 && len(zones) < 2, at, "needs at least two zones in spec.provider.zones")...)
	errs = append(errs, unique(services.Zones, at, "name",
		func(zone v1beta1.SeedSettingLoadBalancerServicesZones) string { return zone.Name })...)
	for i, zone := range services.Zones {
		if !slices.Contains(zones, zone.Name) {
			errs = append(errs, field.NotSupported(at.Index(i).Child("name"), zone.Name, zones))
		}
		errs = append(errs, trafficPolicy(zone.ExternalTrafficPolicy, at.Index(i).Child("externalTrafficPolicy"))...)
	}
	return errs
}

func resources(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, quantity := range list {
		errs = append(errs, quantityNotNegative(quantity, path.Key(string(name)))...)
	}
	return errs
}

// cpuAndMemory checks resources, which may only be CPU and memory.
func cpuAndMemory(list corev1.ResourceList, path *field.Path) field.ErrorList {
	errs := resources(list, path)
	for name := range list {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			errs = append(errs, field.NotSupported(path, name, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
		}
	}
	return errs
}

func verticalFeatures(gates map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(gates) {
		if !slices.Contains(scaledFeatures, name) {
			errs = append(errs, field.NotSupported(path.Key(name), name, scaledFeatures))
		}
	}
	return errs
}
