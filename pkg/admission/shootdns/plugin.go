// Package shootdns is an admission plugin of the garden's API. A Shoot without a domain gets one below a default domain, and no
// Shoot takes a default domain that is not for it.
package shootdns

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootDNS",
	Rules: []admission.Rule{{
		Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreateOrUpdate, Subresources: []string{"", "binding"},
		Admit: admission.On(admit), Validate: admission.On(validate),
	}},
}

func admit(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil || old != nil && equality.Semantic.DeepEqual(shoot.Spec, old.Spec) {
		return nil
	}
	if old != nil {
		restorePrimary(shoot.Spec.DNS, old.Spec.DNS)
	}
	if shoot.Spec.SeedName == nil || isUnmanaged(shoot.Spec.DNS) {
		return nil
	}
	if shoot.Spec.DNS == nil {
		shoot.Spec.DNS = &gardencorev1beta1.DNS{}
	}
	dns := shoot.Spec.DNS
	if dns.Domain != nil && (len(dns.Providers) == 0 || admission.PrimaryProvider(dns) != nil) {
		return nil
	}
	domains, err := defaultDomains(ctx, garden, shoot.Spec.SeedName)
	if err != nil {
		return err
	}
	if dns.Domain != nil {
		if matching(domains, *dns.Domain) == "" {
			dns.Providers[0].Primary = ptr.To(true)
		}
		return nil
	}
	if len(domains) == 0 {
		return nil
	}
	suffix, err := domainOfProject(ctx, garden, request.Namespace, domains[0])
	if err != nil {
		return err
	}
	dns.Domain = ptr.To(label(shoot) + "." + suffix)
	return nil
}

// domainOfProject returns the part of a default domain that belongs to the Project of a namespace.
func domainOfProject(ctx context.Context, garden *admission.Garden, namespace, domain string) (string, error) {
	project, err := garden.ProjectOf(ctx, namespace)
	if err != nil {
		return "", err
	}
	if project == nil {
		return "", fmt.Errorf("the namespace %q belongs to no Project, so a Shoot in it has no part of the default domain %q: set spec.dns.domain to another domain", namespace, domain)
	}
	return project.Name + "." + domain, nil
}

// validate judges a domain when it is set, and when the Shoot gets its Seed, which can have other default domains.
func validate(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	dns := shoot.Spec.DNS
	if shoot.DeletionTimestamp != nil || dns == nil || dns.Domain == nil || isUnmanaged(dns) {
		return nil
	}
	if old != nil && equality.Semantic.DeepEqual(dns, old.Spec.DNS) && (old.Spec.SeedName != nil || shoot.Spec.SeedName == nil) {
		return nil
	}
	domains, err := defaultDomains(ctx, garden, shoot.Spec.SeedName)
	if err != nil {
		return err
	}
	domain := matching(domains, *dns.Domain)
	if domain == "" {
		return nil
	}
	suffix, err := domainOfProject(ctx, garden, request.Namespace, domain)
	if err != nil {
		return err
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "dns")
	if admission.PrimaryProvider(dns) != nil {
		errs = append(errs, field.Invalid(path.Child("providers"), field.OmitValueType{}, fmt.Sprintf(
			"must have no primary provider, because the garden's own account has the records of the default domain %q", domain)))
	}
	if wanted := wrongFormat(shoot, suffix); wanted != "" {
		errs = append(errs, field.Invalid(path.Child("domain"), *dns.Domain, fmt.Sprintf("is below the default domain %q, and must therefore be %s", domain, wanted)))
	}
	return request.Invalid(errs)
}
