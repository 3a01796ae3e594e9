package seedvalidator

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// removal is what an update takes away from a Seed.
type removal struct {
	zones, domains []string
	internalDomain string
	// only are the default domains that remain, if the Seed had those of the garden before.
	only []string
}

// compare returns what an update takes away.
func compare(updated, old *gardencorev1beta1.SeedSpec) removal {
	removed := removal{zones: without(old.Provider.Zones, updated.Provider.Zones)}
	if before := old.DNS.Internal; before != nil && (updated.DNS.Internal == nil || updated.DNS.Internal.Domain != before.Domain) {
		removed.internalDomain = before.Domain
	}
	before, after := domains(old.DNS.Defaults), domains(updated.DNS.Defaults)
	removed.domains = without(before, after)
	if len(before) == 0 {
		removed.only = after
	}
	return removed
}

func (r removal) nothing() bool {
	return len(r.zones)+len(r.domains)+len(r.only) == 0 && r.internalDomain == ""
}

// refused returns an error if one of the Shoots of the Seed uses what is taken away. Each Shoot uses the zones and the
// internal domain.
func (r removal) refused(shoots []*gardencorev1beta1.Shoot) error {
	if len(shoots) > 0 && len(r.zones) > 0 {
		return fmt.Errorf("spec.provider.zones: %v cannot be removed while Shoots use the Seed, such as %s/%s", r.zones, shoots[0].Namespace, shoots[0].Name)
	}
	if len(shoots) > 0 && r.internalDomain != "" {
		return fmt.Errorf("spec.dns.internal.domain: %q cannot be changed while Shoots use the Seed, such as %s/%s",
			r.internalDomain, shoots[0].Namespace, shoots[0].Name)
	}
	for _, shoot := range shoots {
		if domain := r.usedBy(shoot); domain != "" {
			return fmt.Errorf("spec.dns.defaults: the Shoot %s/%s uses the default domain of %q, which the Seed would lose", shoot.Namespace, shoot.Name, domain)
		}
	}
	return nil
}

// usedBy returns the domain of a Shoot if it is below a default domain that is taken away. A Shoot without a DNS provider of
// its own has a default domain.
func (r removal) usedBy(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil {
		return ""
	}
	domain := *shoot.Spec.DNS.Domain
	below := func(parent string) bool { return strings.HasSuffix(domain, "."+parent) }
	if slices.ContainsFunc(r.domains, below) || len(r.only) > 0 && len(shoot.Spec.DNS.Providers) == 0 && !slices.ContainsFunc(r.only, below) {
		return domain
	}
	return ""
}

func domains(configs []gardencorev1beta1.SeedDNSProviderConfig) []string {
	var found []string
	for _, config := range configs {
		found = append(found, config.Domain)
	}
	return found
}

func without(values, removed []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return slices.Contains(removed, value) })
}
