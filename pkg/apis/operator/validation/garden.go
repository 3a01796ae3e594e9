package validation

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// apiPrefix is the prefix of the name of the API server in a domain of the garden.
const apiPrefix = "api."

// ValidateGarden checks a Garden.
func ValidateGarden(garden *v1alpha1.Garden) field.ErrorList {
	errs := validateOperations(garden, nil)
	return append(errs, validateGardenSpec(&garden.Spec)...)
}

// ValidateGardenCreation checks a new Garden.
func ValidateGardenCreation(garden *v1alpha1.Garden) field.ErrorList {
	errs := ValidateGarden(garden)
	for i, name := range garden.Finalizers {
		if name == constants.FinalizerOperator || name == constants.FinalizerReferenceProtection {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "finalizers").Index(i), name+" is set by the operator only"))
		}
	}
	return errs
}

// ValidateGardenUpdate checks a Garden that replaces another.
func ValidateGardenUpdate(garden, old *v1alpha1.Garden) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateOperations(garden, old)
	errs = append(errs, rules.UnchangedInDeletion("garden", garden, garden.Spec, old.Spec, spec)...)
	errs = append(errs, validateNetworksUpdate(&garden.Spec, &old.Spec, spec)...)
	errs = append(errs, validateDomainsUpdate(&garden.Spec, &old.Spec, spec)...)
	errs = append(errs, validateEncryptionUpdate(garden, old)...)
	return append(errs, validateGardenSpec(&garden.Spec)...)
}

func validateGardenSpec(spec *v1alpha1.GardenSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateDNS(spec.DNS, path.Child("dns"))
	errs = append(errs, validateDomains(spec, path)...)
	errs = append(errs, rules.Unique(spec.Extensions, path.Child("extensions"), "type",
		func(extension v1alpha1.GardenExtension) string { return extension.Type })...)
	errs = append(errs, validateResources(spec.Resources, path.Child("resources"))...)
	errs = append(errs, validateNetworks(spec, path)...)
	errs = append(errs, validateKubernetes(&spec.VirtualCluster, path.Child("virtualCluster", "kubernetes"))...)
	errs = append(errs, validateGardener(&spec.VirtualCluster, path.Child("virtualCluster", "gardener"))...)
	if etcd := spec.VirtualCluster.ETCD; etcd != nil && etcd.Main != nil && etcd.Main.Backup != nil {
		at := path.Child("virtualCluster", "etcd", "main", "backup")
		errs = append(errs, rules.Required(etcd.Main.Backup.Provider, at.Child("provider"))...)
		errs = append(errs, rules.ObjectName(etcd.Main.Backup.SecretRef.Name, at.Child("secretRef", "name"))...)
	}
	return errs
}

func validateDNS(dns *v1alpha1.DNSManagement, path *field.Path) field.ErrorList {
	if dns == nil {
		return nil
	}
	at := path.Child("providers")
	errs := rules.Unique(dns.Providers, at, "name", func(provider v1alpha1.DNSProvider) string { return provider.Name })
	for i, provider := range dns.Providers {
		errs = append(errs, rules.ObjectName(provider.SecretRef.Name, at.Index(i).Child("secretRef", "name"))...)
	}
	return errs
}

// located is a domain and its field.
type located struct {
	domain v1alpha1.DNSDomain
	path   *field.Path
}

// domains returns all domains of a Garden.
func domains(spec *v1alpha1.GardenSpec, path *field.Path) []located {
	var all []located
	for i, domain := range spec.RuntimeCluster.Ingress.Domains {
		all = append(all, located{domain, path.Child("runtimeCluster", "ingress", "domains").Index(i)})
	}
	for i, domain := range spec.VirtualCluster.DNS.Domains {
		all = append(all, located{domain, path.Child("virtualCluster", "dns", "domains").Index(i)})
	}
	gardener := path.Child("virtualCluster", "gardener")
	if dashboard := spec.VirtualCluster.Gardener.GardenerDashboard; dashboard != nil && dashboard.Domain != nil {
		all = append(all, located{*dashboard.Domain, gardener.Child("gardenerDashboard", "domain")})
	}
	if discovery := spec.VirtualCluster.Gardener.GardenerDiscoveryServer; discovery != nil && discovery.Domain != nil {
		all = append(all, located{*discovery.Domain, gardener.Child("gardenerDiscoveryServer", "domain")})
	}
	return all
}

// validateDomains checks that each domain is a name of a domain, and names a DNS account if and only if there are any.
func validateDomains(spec *v1alpha1.GardenSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	name := func(domain v1alpha1.DNSDomain) string { return domain.Name }
	errs = append(errs, rules.Unique(spec.RuntimeCluster.Ingress.Domains, path.Child("runtimeCluster", "ingress", "domains"), "name", name)...)
	errs = append(errs, rules.Unique(spec.VirtualCluster.DNS.Domains, path.Child("virtualCluster", "dns", "domains"), "name", name)...)
	var accounts []string
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers {
			accounts = append(accounts, provider.Name)
		}
	}
	for _, one := range domains(spec, path) {
		errs = append(errs, rules.Messages(validation.IsDNS1123Subdomain(one.domain.Name), one.domain.Name, one.path.Child("name"))...)
		at := one.path.Child("provider")
		switch provider := one.domain.Provider; {
		case spec.DNS == nil && provider != nil:
			errs = append(errs, field.Forbidden(at, "there are no DNS accounts: set spec.dns.providers, or remove the provider"))
		case spec.DNS != nil && provider == nil:
			errs = append(errs, field.Required(at, "must name one of spec.dns.providers"))
		case spec.DNS != nil && !slices.Contains(accounts, *provider):
			errs = append(errs, field.NotSupported(at, *provider, accounts))
		}
	}
	return errs
}

// validateDomainsUpdate checks that what clients and certificates depend on stays: the first domains.
func validateDomainsUpdate(spec, old *v1alpha1.GardenSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if now, before := spec.VirtualCluster.DNS.Domains, old.VirtualCluster.DNS.Domains; len(now) > 0 && len(before) > 0 {
		errs = append(errs, rules.Immutable(now[0].Name, before[0].Name, path.Child("virtualCluster", "dns", "domains").Index(0).Child("name"))...)
	}
	if now, before := spec.RuntimeCluster.Ingress.Domains, old.RuntimeCluster.Ingress.Domains; len(now) > 0 && len(before) > 0 {
		errs = append(errs, rules.Immutable(now[0].Name, before[0].Name, path.Child("runtimeCluster", "ingress", "domains").Index(0).Child("name"))...)
	}
	return errs
}

// validateResources checks the objects that configurations of extensions refer to.
func validateResources(resources []corev1beta1.NamedResourceReference, path *field.Path) field.ErrorList {
	errs := rules.Unique(resources, path, "name", func(resource corev1beta1.NamedResourceReference) string { return resource.Name })
	for i, resource := range resources {
		at, ref := path.Index(i), resource.ResourceRef
		errs = append(errs, rules.Required(resource.Name, at.Child("name"))...)
		errs = append(errs, rules.ReferencedType(ref.APIVersion, ref.Kind, at.Child("resourceRef"), rules.Secret, rules.ConfigMap)...)
		errs = append(errs, rules.ObjectName(ref.Name, at.Child("resourceRef", "name"))...)
	}
	return errs
}

// matches reports whether a pattern of a further certificate, which may begin with a *, includes a name.
func matches(pattern, name string) bool {
	found, err := path.Match(pattern, name)
	return err == nil && found
}
