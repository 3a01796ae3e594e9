package validation

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// minServicesPrefix is the shortest prefix of a Seed's Services, all of which must fit into one reserved range.
const minServicesPrefix = 8

// ValidateSeed checks a Seed.
func ValidateSeed(seed *v1beta1.Seed) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&seed.ObjectMeta, false, labelName, field.NewPath("metadata"))
	errs = append(errs, rules.KnownOperation(seed, constants.OperationReconcile, constants.OperationRenewKubeconfig,
		constants.OperationRenewGardenAccessSecrets, constants.OperationRenewWorkloadIdentityTokens)...)
	return append(errs, ValidateSeedSpec(&seed.Spec, field.NewPath("spec"), false)...)
}

// ValidateSeedTemplate checks the Seed in the configuration of a gardenlet. The gardenlet sets missing values later.
func ValidateSeedTemplate(template *v1beta1.SeedTemplate, path *field.Path) field.ErrorList {
	errs := ValidateTemplateMetadata(&template.Metadata, path.Child("metadata"))
	return append(errs, ValidateSeedSpec(&template.Spec, path.Child("spec"), true)...)
}

// ValidateSeedUpdate checks a Seed that replaces another.
func ValidateSeedUpdate(seed, old *v1beta1.Seed) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&seed.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, rules.OperationReplaced(seed, old)...)
	errs = append(errs, validateSeedSpecUpdate(&seed.Spec, &old.Spec, field.NewPath("spec"))...)
	return append(errs, ValidateSeed(seed)...)
}

// ValidateSeedTemplateUpdate checks the Seed in the configuration of a gardenlet that replaces another.
func ValidateSeedTemplateUpdate(template, old *v1beta1.SeedTemplate, path *field.Path) field.ErrorList {
	return validateSeedSpecUpdate(&template.Spec, &old.Spec, path.Child("spec"))
}

func validateSeedSpecUpdate(spec, old *v1beta1.SeedSpec, path *field.Path) field.ErrorList {
	networks, now, before := path.Child("networks"), spec.Networks, old.Networks
	var errs field.ErrorList
	errs = append(errs, immutable(now.Pods, before.Pods, networks.Child("pods"))...)
	errs = append(errs, immutable(now.Services, before.Services, networks.Child("services"))...)
	errs = append(errs, immutable(now.IPFamilies, before.IPFamilies, networks.Child("ipFamilies"))...)
	errs = append(errs, immutableOnceSet(now.Nodes, before.Nodes, networks.Child("nodes"))...)
	if old.Ingress != nil && spec.Ingress != nil {
		errs = append(errs, immutable(spec.Ingress.Domain, old.Ingress.Domain, path.Child("ingress", "domain"))...)
	}
	errs = append(errs, validateBackupUpdate(spec.Backup, old.Backup, path.Child("backup"))...)
	if len(old.DNS.Defaults) > 0 && len(spec.DNS.Defaults) == 0 {
		errs = append(errs, field.Forbidden(path.Child("dns", "defaults"), "default domains can be replaced, but not all removed"))
	}
	return errs
}

// ValidateSeedStatusUpdate checks the status of a Seed that replaces another.
func ValidateSeedStatusUpdate(seed, old *v1beta1.Seed) field.ErrorList {
	return immutableOnceSet(seed.Status.ClusterIdentity, old.Status.ClusterIdentity, field.NewPath("status", "clusterIdentity"))
}

// ValidateSeedSpec checks the specification of a Seed, or that of a template.
func ValidateSeedSpec(spec *v1beta1.SeedSpec, path *field.Path, template bool) field.ErrorList {
	var errs field.ErrorList
	provider := path.Child("provider")
	if !template {
		errs = append(errs, required(spec.Provider.Type, provider.Child("type"))...)
		errs = append(errs, required(spec.Provider.Region, provider.Child("region"))...)
		if spec.Ingress == nil {
			errs = append(errs, field.Required(path.Child("ingress"), ""))
		}
	}
	errs = append(errs, uniqueValues(spec.Provider.Zones, provider.Child("zones"))...)
	errs = append(errs, validateSeedDNS(&spec.DNS, path.Child("dns"), spec.Ingress != nil, template)...)
	errs = append(errs, validateSeedNetworks(&spec.Networks, path.Child("networks"), template)...)
	if spec.Ingress != nil {
		errs = append(errs, validateIngress(spec.Ingress, path.Child("ingress"))...)
	}
	if spec.Backup != nil {
		errs = append(errs, validateBackup(spec.Backup, path.Child("backup"), spec.Provider.Type)...)
		errs = append(errs, credentials(spec.Backup.CredentialsRef, path.Child("backup", "credentialsRef"))...)
	}
	errs = append(errs, validateSeedTaints(spec.Taints, path.Child("taints"))...)
	if spec.Volume != nil {
		errs = append(errs, validateSeedVolume(spec.Volume, path.Child("volume"))...)
	}
	if spec.Settings != nil {
		errs = append(errs, validateSeedSettings(spec.Settings, spec.Provider.Zones, path.Child("settings"))...)
	}
	errs = append(errs, extensions(spec.Extensions, path.Child("extensions"))...)
	errs = append(errs, namedResources(spec.Resources, path.Child("resources"))...)
	names := make([]string, len(spec.AccessRestrictions))
	for i, restriction := range spec.AccessRestrictions {
		names[i] = restriction.Name
	}
	return append(errs, accessRestrictions(names, path.Child("accessRestrictions"))...)
}

func validateSeedDNS(dns *v1beta1.SeedDNS, path *field.Path, hasIngress, template bool) field.ErrorList {
	var errs field.ErrorList
	switch {
	case dns.Provider != nil:
		errs = append(errs, required(dns.Provider.Type, path.Child("provider", "type"))...)
		errs = append(errs, credentials(dns.Provider.CredentialsRef, path.Child("provider", "credentialsRef"))...)
	case hasIngress:
		errs = append(errs, field.Required(path.Child("provider"), "the records of the domain for Ingresses need an account"))
	}
	switch {
	case dns.Internal != nil:
		errs = append(errs, validateSeedDomain(dns.Internal, path.Child("internal"))...)
	case !template:
		errs = append(errs, field.Required(path.Child("internal"), ""))
	}
	defaults := path.Child("defaults")
	errs = append(errs, unique(dns.Defaults, defaults, "domain", func(one v1beta1.SeedDNSProviderConfig) string { return one.Domain })...)
	for i := range dns.Defaults {
		errs = append(errs, validateSeedDomain(&dns.Defaults[i], defaults.Index(i))...)
	}
	return errs
}

func validateSeedDomain(config *v1beta1.SeedDNSProviderConfig, path *field.Path) field.ErrorList {
	errs := required(config.Type, path.Child("type"))
	errs = append(errs, objectName(config.Domain, path.Child("domain"))...)
	errs = append(errs, notEmpty(config.Zone, path.Child("zone"))...)
	return append(errs, credentials(&config.CredentialsRef, path.Child("credentialsRef"))...)
}

func validateSeedNetworks(networks *v1beta1.SeedNetworks, path *field.Path, template bool) field.ErrorList {
	values := map[string]*string{"nodes": networks.Nodes}
	var errs field.ErrorList
	for name, value := range map[string]*string{"pods": &networks.Pods, "services": &networks.Services} {
		if *value != "" {
			values[name] = value
		} else if !template {
			errs = append(errs, field.Required(path.Child(name), ""))
		}
	}
	ranges, found := rangesOf(values, path)
	errs = append(errs, found...)
	errs = append(errs, disjoint(ranges)...)
	errs = append(errs, ipFamilies(networks.IPFamilies, path.Child("ipFamilies"))...)
	for _, one := range ranges {
		if one.name == path.Child("services").String() && one.prefix.Addr().Is4() && one.prefix.Bits() < minServicesPrefix {
			errs = append(errs, field.Invalid(one.path, one.prefix.String(), "must not be larger than a range with the prefix length 8"))
		}
	}
	if defaults := networks.ShootDefaults; defaults != nil {
		ofShoots, found := rangesOf(map[string]*string{"pods": defaults.Pods, "services": defaults.Services}, path.Child("shootDefaults"))
		errs = append(errs, found...)
		errs = append(errs, disjoint(ofShoots)...)
		ranges = append(ranges, ofShoots...)
	}
	for i, block := range networks.BlockCIDRs {
		_, found := prefixOf(block, path.Child("blockCIDRs").Index(i))
		errs = append(errs, found...)
	}
	return append(errs, ofFamily(ranges, networks.IPFamilies)...)
}

func validateIngress(ingress *v1beta1.Ingress, path *field.Path) field.ErrorList {
	errs := objectName(ingress.Domain, path.Child("domain"))
	return append(errs, oneOf(ingress.Controller.Kind, path.Child("controller", "kind"), "nginx")...)
}

// validateBackup checks the location of backups, but not the credentials.
func validateBackup(backup *v1beta1.Backup, path *field.Path, providerType string) field.ErrorList {
	errs := required(backup.Provider, path.Child("provider"))
	if backup.Provider != providerType && (backup.Region == nil || *backup.Region == "") {
		errs = append(errs, field.Required(path.Child("region"), "the infrastructure of backups is another one than that of the cluster"))
	}
	return errs
}

func validateBackupUpdate(backup, old *v1beta1.Backup, path *field.Path) field.ErrorList {
	if old == nil {
		return nil
	}
	if backup == nil {
		return field.ErrorList{field.Forbidden(path, "backups cannot be switched off")}
	}
	errs := immutable(backup.Provider, old.Provider, path.Child("provider"))
	return append(errs, immutable(backup.Region, old.Region, path.Child("region"))...)
}

func validateSeedTaints(taints []v1beta1.SeedTaint, path *field.Path) field.ErrorList {
	errs := unique(taints, path, "", func(taint v1beta1.SeedTaint) string {
		if taint.Value == nil {
			return taint.Key
		}
		return taint.Key + "=" + *taint.Value
	})
	for i, taint := range taints {
		errs = append(errs, required(taint.Key, path.Index(i).Child("key"))...)
	}
	return errs
}

func validateSeedVolume(volume *v1beta1.SeedVolume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if volume.MinimumSize != nil {
		errs = append(errs, quantityNotNegative(*volume.MinimumSize, path.Child("minimumSize"))...)
	}
	at := path.Child("providers")
	errs = append(errs, unique(volume.Providers, at, "purpose",
		func(provider v1beta1.SeedVolumeProvider) string { return provider.Purpose })...)
	for i, provider := range volume.Providers {
		errs = append(errs, required(provider.Purpose, at.Index(i).Child("purpose"))...)
		errs = append(errs, required(provider.Name, at.Index(i).Child("name"))...)
	}
	return errs
}

func trafficPolicy(policy *corev1.ServiceExternalTrafficPolicy, path *field.Path) field.ErrorList {
	return optionalOneOf(policy, path, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
}
