package validation

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var kubernetesVersion = regexp.MustCompile(`^([0-9]+\.){2}[0-9]+$`)

// ValidateCloudProfile checks a CloudProfile.
func ValidateCloudProfile(profile *v1beta1.CloudProfile) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&profile.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, ValidateCloudProfileSpec(&profile.Spec, field.NewPath("spec"))...)
}

// ValidateCloudProfileUpdate checks a CloudProfile that replaces another.
func ValidateCloudProfileUpdate(profile, old *v1beta1.CloudProfile) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&profile.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if before := maxNodes(old.Spec.Limits); before != nil {
		at := field.NewPath("spec", "limits", "maxNodesTotal")
		if now := maxNodes(profile.Spec.Limits); now != nil && *now < *before {
			errs = append(errs, field.Invalid(at, *now, "cannot be decreased"))
		}
	}
	return append(errs, ValidateCloudProfile(profile)...)
}

func maxNodes(limits *v1beta1.Limits) *int32 {
	if limits == nil {
		return nil
	}
	return limits.MaxNodesTotal
}

// ValidateCloudProfileSpec checks the specification of a CloudProfile.
func ValidateCloudProfileSpec(spec *v1beta1.CloudProfileSpec, path *field.Path) field.ErrorList {
	errs := required(spec.Type, path.Child("type"))
	errs = append(errs, certificates(spec.CABundle, path.Child("caBundle"))...)
	errs = append(errs, validateCapabilities(spec.MachineCapabilities, path.Child("machineCapabilities"))...)
	errs = append(errs, validateKubernetesVersions(spec.Kubernetes.Versions, path.Child("kubernetes", "versions"))...)
	for name, missing := range map[string]bool{
		"machineImages": len(spec.MachineImages) == 0, "machineTypes": len(spec.MachineTypes) == 0, "regions": len(spec.Regions) == 0,
	} {
		if missing {
			errs = append(errs, field.Required(path.Child(name), "at least one is required"))
		}
	}
	errs = append(errs, validateMachineImages(spec.MachineImages, spec.MachineCapabilities, path.Child("machineImages"))...)
	errs = append(errs, validateMachineTypes(spec.MachineTypes, spec.MachineCapabilities, path.Child("machineTypes"))...)
	errs = append(errs, validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes"))...)
	errs = append(errs, validateRegions(spec.Regions, path.Child("regions"))...)
	if spec.SeedSelector != nil {
		errs = append(errs, selector(&spec.SeedSelector.LabelSelector, path.Child("seedSelector"))...)
	}
	if limit := maxNodes(spec.Limits); limit != nil && *limit <= 0 {
		errs = append(errs, field.Invalid(path.Child("limits", "maxNodesTotal"), *limit, "must be positive"))
	}
	if spec.Bastion != nil {
		errs = append(errs, validateBastion(spec, path.Child("bastion"))...)
	}
	return errs
}

// unprefixedName checks a name that may be part of labels, without a domain before it.
func unprefixedName(name string, path *field.Path) field.ErrorList {
	if errs := required(name, path); errs != nil {
		return errs
	}
	if strings.Contains(name, "/") {
		return field.ErrorList{field.Invalid(path, name, "must not have a prefix")}
	}
	return messages(validation.IsQualifiedName(name), name, path)
}

func validateCapabilities(capabilities []v1beta1.CapabilityDefinition, path *field.Path) field.ErrorList {
	if len(capabilities) == 0 {
		return nil
	}
	errs := unique(capabilities, path, "name", func(one v1beta1.CapabilityDefinition) string { return one.Name })
	hasArchitecture := false
	for i, capability := range capabilities {
		at, values := path.Index(i), path.Index(i).Child("values")
		errs = append(errs, unprefixedName(capability.Name, at.Child("name"))...)
		errs = append(errs, forbidden(strings.HasPrefix(capability.Name, "gardener-"), at.Child("name"), "the prefix gardener- is reserved")...)
		if len(capability.Values) == 0 {
			errs = append(errs, field.Required(values, ""))
		}
		errs = append(errs, uniqueValues(capability.Values, values)...)
		hasArchitecture = hasArchitecture || capability.Name == v1beta1.CapabilityArchitecture
		for j, value := range capability.Values {
			errs = append(errs, required(value, values.Index(j))...)
			if capability.Name == v1beta1.CapabilityArchitecture {
				errs = append(errs, oneOf(value, values.Index(j), v1beta1.ArchitectureAMD64, v1beta1.ArchitectureARM64)...)
			}
		}
	}
	if !hasArchitecture {
		errs = append(errs, field.Required(path, "the capability architecture is required"))
	}
	return errs
}

// validateCapabilityValues checks the capabilities of a machine type or image against their definitions.
func validateCapabilityValues(given v1beta1.Capabilities, defined []v1beta1.CapabilityDefinition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(given) {
		i := slices.IndexFunc(defined, func(one v1beta1.CapabilityDefinition) bool { return one.Name == name })
		if i < 0 {
			errs = append(errs, field.Invalid(path.Key(name), name, "is not defined in spec.machineCapabilities"))
			continue
		}
		for j, value := range given[name] {
			if !slices.Contains(defined[i].Values, value) {
				errs = append(errs, field.NotSupported(path.Key(name).Index(j), value, []string(defined[i].Values)))
			}
		}
		errs = append(errs, uniqueValues(given[name], path.Key(name))...)
	}
	if len(given[v1beta1.CapabilityArchitecture]) > 1 {
		errs = append(errs, field.Forbidden(path.Key(v1beta1.CapabilityArchitecture), "there can be one architecture only"))
	}
	return errs
}

func validateMachineTypes(machines []v1beta1.MachineType, defined []v1beta1.CapabilityDefinition, path *field.Path) field.ErrorList {
	errs := unique(machines, path, "name", func(machine v1beta1.MachineType) string { return machine.Name })
	for i, machine := range machines {
		at := path.Index(i)
		errs = append(errs, unprefixedName(machine.Name, at.Child("name"))...)
		for name, quantity := range map[string]resource.Quantity{"cpu": machine.CPU, "gpu": machine.GPU, "memory": machine.Memory} {
			errs = append(errs, quantityNotNegative(quantity, at.Child(name))...)
		}
		errs = append(errs, optionalOneOf(machine.Architecture, at.Child("architecture"), v1beta1.ArchitectureAMD64,
			v1beta1.ArchitectureARM64)...)
		errs = append(errs, validateCapabilityValues(machine.Capabilities, defined, at.Child("capabilities"))...)
		if values := machine.Capabilities[v1beta1.CapabilityArchitecture]; len(values) == 1 && machine.Architecture != nil &&
			values[0] != *machine.Architecture {
			errs = append(errs, field.Invalid(at.Child("architecture"), *machine.Architecture, "is not the one in capabilities"))
		}
		if storage := machine.Storage; storage != nil {
			if (storage.Size == nil) == (storage.MinSize == nil) {
				errs = append(errs, field.Invalid(at.Child("storage"), storage.Type, "must have either size or minSize"))
			}
			for name, quantity := range map[string]*resource.Quantity{"size": storage.Size, "minSize": storage.MinSize} {
				if quantity != nil {
					errs = append(errs, quantityNotNegative(*quantity, at.Child("storage", name))...)
				}
			}
		}
	}
	return errs
}

func validateVolumeTypes(volumes []v1beta1.VolumeType, path *field.Path) field.ErrorList {
	errs := unique(volumes, path, "name", func(volume v1beta1.VolumeType) string { return volume.Name })
	for i, volume := range volumes {
		for name, value := range map[string]string{"class": volume.Class, "name": volume.Name} {
			at := path.Index(i).Child(name)
			if value == "" {
				errs = append(errs, field.Required(at, ""))
				continue
			}
			errs = append(errs, messages(validation.IsQualifiedName(value), value, at)...)
		}
		if volume.MinSize != nil {
			errs = append(errs, quantityNotNegative(*volume.MinSize, path.Index(i).Child("minSize"))...)
		}
	}
	return errs
}

func validateRegions(regions []v1beta1.Region, path *field.Path) field.ErrorList {
	errs := unique(regions, path, "name", func(region v1beta1.Region) string { return region.Name })
	for i, region := range regions {
		at := path.Index(i)
		errs = append(errs, required(region.Name, at.Child("name"))...)
		errs = append(errs, metav1validation.ValidateLabels(region.Labels, at.Child("labels"))...)
		errs = append(errs, unique(region.Zones, at.Child("zones"), "name", func(zone v1beta1.AvailabilityZone) string { return zone.Name })...)
		for j, zone := range region.Zones {
			errs = append(errs, required(zone.Name, at.Child("zones").Index(j).Child("name"))...)
		}
		names := make([]string, len(region.AccessRestrictions))
		for j, restriction := range region.AccessRestrictions {
			names[j] = restriction.Name
		}
		errs = append(errs, accessRestrictions(names, at.Child("accessRestrictions"))...)
	}
	return errs
}
