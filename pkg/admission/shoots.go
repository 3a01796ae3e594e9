package admission

import (
	"fmt"
	"slices"

	"sigs.k8s.io/json"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// NginxEnabled reports whether a Shoot has the addon for ingresses.
func NginxEnabled(spec *gardencorev1beta1.ShootSpec) bool {
	return spec.Addons != nil && spec.Addons.NginxIngress != nil && spec.Addons.NginxIngress.Enabled
}

// AutoscalerEnabled reports whether a Shoot has the vertical pod autoscaler.
func AutoscalerEnabled(spec *gardencorev1beta1.ShootSpec) bool {
	return spec.Kubernetes.VerticalPodAutoscaler != nil && spec.Kubernetes.VerticalPodAutoscaler.Enabled
}

// Zones returns the zones of the pools of a Shoot, each once, in their order.
func Zones(spec *gardencorev1beta1.ShootSpec) []string {
	var zones []string
	for _, pool := range spec.Provider.Workers {
		for _, zone := range pool.Zones {
			if !slices.Contains(zones, zone) {
				zones = append(zones, zone)
			}
		}
	}
	return zones
}

// PoolOf returns the pool with a name; nil if there is none.
func PoolOf(spec *gardencorev1beta1.ShootSpec, name string) *gardencorev1beta1.Worker {
	for i := range spec.Provider.Workers {
		if spec.Provider.Workers[i].Name == name {
			return &spec.Provider.Workers[i]
		}
	}
	return nil
}

// PrimaryProvider returns the DNS provider of a Shoot's own domain; nil if it has none.
func PrimaryProvider(dns *gardencorev1beta1.DNS) *gardencorev1beta1.DNSProvider {
	if dns == nil {
		return nil
	}
	for i := range dns.Providers {
		if primary := dns.Providers[i].Primary; primary != nil && *primary {
			return &dns.Providers[i]
		}
	}
	return nil
}

// SeedOf returns the Seed that the gardenlet of a ManagedSeed registers; an empty one if its configuration has none.
func SeedOf(seed *seedmanagementv1alpha1.ManagedSeed) (*gardencorev1beta1.SeedTemplate, error) {
	var configuration struct {
		SeedConfig gardencorev1beta1.SeedTemplate `json:"seedConfig"`
	}
	if len(seed.Spec.Gardenlet.Config.Raw) == 0 {
		return &configuration.SeedConfig, nil
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(seed.Spec.Gardenlet.Config.Raw, &configuration); err != nil {
		return nil, fmt.Errorf("spec.gardenlet.config of the ManagedSeed %q: %w", seed.Name, err)
	}
	return &configuration.SeedConfig, nil
}
