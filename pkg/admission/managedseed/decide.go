package managedseed

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// gateTopology is the feature gate that the setting topologyAwareRouting of Seeds needs.
const gateTopology = "TopologyAwareHints"

// contradictions returns an error for each value of a Seed that is not that of its Shoot. What an update does not change is not
// judged; before is nil for a new Seed.
func contradictions(spec, before *gardencorev1beta1.SeedSpec, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	var errs field.ErrorList
	stored := map[string]string{}
	if before != nil {
		for _, one := range valuesOf(before, shoot) {
			stored[one.path.String()] = one.value
		}
	}
	for _, one := range valuesOf(spec, shoot) {
		if known, found := stored[one.path.String()]; one.value != one.wanted && (!found || known != one.value) {
			errs = append(errs, field.Invalid(one.path, one.value, fmt.Sprintf("must be %q, as in the Shoot %q", one.wanted, shoot.Name)))
		}
	}
	if hasAutoscaler(spec) && (before == nil || !hasAutoscaler(before)) {
		errs = append(errs, field.Invalid(seedField.Child("settings", "verticalPodAutoscaler", "enabled"), true,
			fmt.Sprintf("must be false, because the Shoot %q has the autoscaler", shoot.Name)))
	}
	if spec.DNS.Provider == nil && spec.Ingress != nil && before == nil {
		errs = append(errs, field.Required(seedField.Child("dns", "provider"), fmt.Sprintf(
			"the Shoot %q has neither a primary DNS provider nor a default domain from which it could be taken", shoot.Name)))
	}
	zones := admission.Zones(&shoot.Spec)
	for i, zone := range spec.Provider.Zones {
		if !slices.Contains(zones, zone) && (before == nil || !slices.Contains(before.Provider.Zones, zone)) {
			errs = append(errs, field.Invalid(seedField.Child("provider", "zones").Index(i), zone, fmt.Sprintf("the Shoot %q has only the zones %v", shoot.Name, zones)))
		}
	}
	if routesByTopology(spec) && (before == nil || !routesByTopology(before)) && lacksTopology(&shoot.Spec) {
		errs = append(errs, field.Forbidden(seedField.Child("settings", "topologyAwareRouting", "enabled"),
			fmt.Sprintf("the feature gate %s is off in the Shoot %q", gateTopology, shoot.Name)))
	}
	return errs
}

// compared is a value of a Seed, and the one that its Shoot has.
type compared struct {
	path          *field.Path
	value, wanted string
}

func valuesOf(spec *gardencorev1beta1.SeedSpec, shoot *gardencorev1beta1.Shoot) []compared {
	rows := []compared{
		{seedField.Child("provider", "type"), spec.Provider.Type, shoot.Spec.Provider.Type},
		{seedField.Child("provider", "region"), spec.Provider.Region, shoot.Spec.Region},
	}
	if networking := shoot.Spec.Networking; networking != nil {
		for _, row := range []compared{
			{seedField.Child("networks", "nodes"), ptr.Deref(spec.Networks.Nodes, ""), ptr.Deref(networking.Nodes, "")},
			{seedField.Child("networks", "pods"), spec.Networks.Pods, ptr.Deref(networking.Pods, "")},
			{seedField.Child("networks", "services"), spec.Networks.Services, ptr.Deref(networking.Services, "")},
		} {
			if row.wanted != "" {
				rows = append(rows, row)
			}
		}
	}
	if spec.Ingress != nil {
		rows = append(rows, compared{seedField.Child("ingress", "domain"), spec.Ingress.Domain, ingressDomain(shoot)})
	}
	return rows
}

func ingressDomain(shoot *gardencorev1beta1.Shoot) string { return "ingress." + domainOf(shoot) }

func hasAutoscaler(spec *gardencorev1beta1.SeedSpec) bool {
	return spec.Settings != nil && spec.Settings.VerticalPodAutoscaler != nil && spec.Settings.VerticalPodAutoscaler.Enabled
}

func routesByTopology(spec *gardencorev1beta1.SeedSpec) bool {
	return spec.Settings != nil && spec.Settings.TopologyAwareRouting != nil && spec.Settings.TopologyAwareRouting.Enabled
}

// lacksTopology reports whether a component of a Shoot has the feature gate off.
func lacksTopology(spec *gardencorev1beta1.ShootSpec) bool {
	var gates []map[string]bool
	if server := spec.Kubernetes.KubeAPIServer; server != nil {
		gates = append(gates, server.FeatureGates)
	}
	if manager := spec.Kubernetes.KubeControllerManager; manager != nil {
		gates = append(gates, manager.FeatureGates)
	}
	if proxy := spec.Kubernetes.KubeProxy; proxy != nil {
		gates = append(gates, proxy.FeatureGates)
	}
	return slices.ContainsFunc(gates, func(set map[string]bool) bool {
		on, found := set[gateTopology]
		return found && !on
	})
}
