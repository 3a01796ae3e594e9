package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
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
			errs = append(errs, podTolerations(config.Tolerations, path.Child("excessCapacityReservation", "configs").Index(i).Child("tolerations"))...)
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
	errs = append(errs, apivalidation.ValidateAnnotations(services.Annotations, path.Child("annotations"))...)
	at := path.Child("zones")
	errs = append(errs, forbidden(len(services.Zones) > 0 && len(zones) < 2, at, "needs at least two zones in spec.provider.zones")...)
	errs = append(errs, unique(services.Zones, at, "name",
		func(zone v1beta1.SeedSettingLoadBalancerServicesZones) string { return zone.Name })...)
	for i, zone := range services.Zones {
		if !slices.Contains(zones, zone.Name) {
			errs = append(errs, field.NotSupported(at.Index(i).Child("name"), zone.Name, zones))
		}
		errs = append(errs, apivalidation.ValidateAnnotations(zone.Annotations, at.Index(i).Child("annotations"))...)
		errs = append(errs, trafficPolicy(zone.ExternalTrafficPolicy, at.Index(i).Child("externalTrafficPolicy"))...)
	}
	return errs
}

// podTolerations checks tolerations as Kubernetes checks those of Pods.
func podTolerations(list []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		toleration, at := &list[i], path.Index(i)
		if toleration.Key != "" {
			errs = append(errs, messages(validation.IsQualifiedName(toleration.Key), toleration.Key, at.Child("key"))...)
		} else if toleration.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), toleration.Operator, "must be Exists for a toleration of all taints, which has no key"))
		}
		switch toleration.Operator {
		case corev1.TolerationOpEqual, "":
			errs = append(errs, messages(validation.IsValidLabelValue(toleration.Value), toleration.Value, at.Child("value"))...)
		case corev1.TolerationOpExists:
			if toleration.Value != "" {
				errs = append(errs, field.Invalid(at.Child("value"), toleration.Value, "must be empty with the operator Exists"))
			}
		default:
			errs = append(errs, field.NotSupported(at.Child("operator"), toleration.Operator,
				[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if toleration.Effect != "" {
			errs = append(errs, oneOf(toleration.Effect, at.Child("effect"), corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
				corev1.TaintEffectNoExecute)...)
		}
		if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), toleration.Effect, "must be NoExecute if tolerationSeconds is set"))
		}
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
