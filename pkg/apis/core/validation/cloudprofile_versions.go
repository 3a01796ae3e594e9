package validation

import (
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// stages are the lifecycle stages of a version, in their order.
var stages = []v1beta1.VersionClassification{
	v1beta1.ClassificationPreview, v1beta1.ClassificationSupported, v1beta1.ClassificationDeprecated, v1beta1.ClassificationExpired,
}

func validateKubernetesVersions(versions []v1beta1.ExpirableVersion, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "at least one is required")}
	}
	errs := unique(versions, path, "version", func(version v1beta1.ExpirableVersion) string { return version.Version })
	supported, latest, latestIndex := map[string][]period{}, (*semver.Version)(nil), 0
	for i, version := range versions {
		at := path.Index(i)
		errs = append(errs, validateExpiration(&version, at)...)
		parsed, err := semver.StrictNewVersion(version.Version)
		if err != nil || !kubernetesVersion.MatchString(version.Version) {
			errs = append(errs, field.Invalid(at.Child("version"), version.Version, "must be a version such as 1.34.2"))
			continue
		}
		if latest == nil || parsed.GreaterThan(latest) {
			latest, latestIndex = parsed, i
		}
		minor := semver.New(parsed.Major(), parsed.Minor(), 0, "", "").String()
		period, is := supportedPeriod(&versions[i])
		if is && slices.ContainsFunc(supported[minor], period.overlaps) {
			name := "classification"
			if len(version.Lifecycle) > 0 {
				name = "lifecycle"
			}
			errs = append(errs, field.Forbidden(at.Child(name), "one version of a minor version can be supported at a time"))
		}
		if is {
			supported[minor] = append(supported[minor], period)
		}
	}
	if latest == nil {
		return errs
	}
	at, last := path.Index(latestIndex), &versions[latestIndex]
	errs = append(errs, forbidden(last.ExpirationDate != nil, at.Child("expirationDate"), "the latest version must not expire")...)
	if i := len(last.Lifecycle) - 1; i >= 0 && last.Lifecycle[i].Classification == v1beta1.ClassificationExpired {
		errs = append(errs, field.Invalid(at.Child("lifecycle").Index(i).Child("classification"), last.Lifecycle[i].Classification,
			"the latest version must not expire"))
	}
	return errs
}

// validateExpiration checks the expiration of a version, which is defined by a date and a classification, or by stages.
func validateExpiration(version *v1beta1.ExpirableVersion, path *field.Path) field.ErrorList {
	errs := optionalOneOf(version.Classification, path.Child("classification"), stages[:3]...)
	if len(version.Lifecycle) == 0 {
		return errs
	}
	const why = "the version has a lifecycle"
	errs = append(errs, forbidden(version.ExpirationDate != nil, path.Child("expirationDate"), why)...)
	errs = append(errs, forbidden(version.Classification != nil, path.Child("classification"), why)...)
	at, before := path.Child("lifecycle"), -1
	var start *metav1.Time
	for i, stage := range version.Lifecycle {
		position := slices.Index(stages, stage.Classification)
		switch {
		case position < 0:
			errs = append(errs, field.NotSupported(at.Index(i).Child("classification"), stage.Classification, stages))
		case position == before:
			errs = append(errs, field.Duplicate(at.Index(i).Child("classification"), stage.Classification))
		case position < before:
			errs = append(errs, field.Invalid(at.Index(i).Child("classification"), stage.Classification, "comes before the stage in front of it"))
		}
		before = max(before, position)
		switch {
		case stage.StartTime == nil && i > 0:
			errs = append(errs, field.Required(at.Index(i).Child("startTime"), "only the first stage can lack it"))
		case stage.StartTime != nil && start != nil && !start.Before(stage.StartTime):
			errs = append(errs, field.Invalid(at.Index(i).Child("startTime"), stage.StartTime.Format(time.RFC3339),
				"must be later than that of the stage in front of it"))
		}
		if stage.StartTime != nil {
			start = stage.StartTime
		}
	}
	return errs
}

func validateMachineImages(images []v1beta1.MachineImage, defined []v1beta1.CapabilityDefinition, path *field.Path) field.ErrorList {
	errs := unique(images, path, "name", func(image v1beta1.MachineImage) string { return image.Name })
	for i, image := range images {
		at, versions := path.Index(i), path.Index(i).Child("versions")
		errs = append(errs, unprefixedName(image.Name, at.Child("name"))...)
		errs = append(errs, optionalOneOf(image.UpdateStrategy, at.Child("updateStrategy"),
			v1beta1.UpdateStrategyPatch, v1beta1.UpdateStrategyMinor, v1beta1.UpdateStrategyMajor)...)
		if len(image.Versions) == 0 {
			errs = append(errs, field.Required(versions, "at least one is required"))
		}
		errs = append(errs, unique(image.Versions, versions, "version",
			func(version v1beta1.MachineImageVersion) string { return version.Version })...)
		for j := range image.Versions {
			errs = append(errs, validateMachineImageVersion(&image.Versions[j], defined, versions.Index(j))...)
		}
	}
	return errs
}

func validateMachineImageVersion(
	version *v1beta1.MachineImageVersion, defined []v1beta1.CapabilityDefinition, path *field.Path,
) field.ErrorList {
	errs := validateExpiration(&version.ExpirableVersion, path)
	errs = append(errs, semanticVersion(version.Version, path.Child("version"))...)
	errs = append(errs, validateRuntimes(version.CRI, path.Child("cri"))...)
	for i, architecture := range version.Architectures {
		errs = append(errs, oneOf(architecture, path.Child("architectures").Index(i), v1beta1.ArchitectureAMD64, v1beta1.ArchitectureARM64)...)
	}
	if constraint := version.KubeletVersionConstraint; constraint != nil {
		if _, err := semver.NewConstraint(*constraint); err != nil {
			errs = append(errs, field.Invalid(path.Child("kubeletVersionConstraint"), *constraint,
				"must be a constraint for versions, such as >= 1.32"))
		}
	}
	if version.InPlaceUpdates != nil && version.InPlaceUpdates.MinVersionForUpdate != nil {
		errs = append(errs, semanticVersion(*version.InPlaceUpdates.MinVersionForUpdate, path.Child("inPlaceUpdates", "minVersionForUpdate"))...)
	}
	errs = append(errs, validateArchitectures(version, defined, path.Child("architectures"))...)
	flavors := path.Child("capabilityFlavors")
	errs = append(errs, forbidden(len(defined) == 0 && len(version.CapabilityFlavors) > 0, flavors, "needs spec.machineCapabilities")...)
	severalArchitectures := slices.ContainsFunc(defined, func(one v1beta1.CapabilityDefinition) bool {
		return one.Name == v1beta1.CapabilityArchitecture && len(one.Values) > 1
	})
	if severalArchitectures && len(version.CapabilityFlavors) == 0 {
		errs = append(errs, field.Required(flavors, "there are several architectures in spec.machineCapabilities"))
	}
	for i, flavor := range version.CapabilityFlavors {
		if severalArchitectures && len(flavor[v1beta1.CapabilityArchitecture]) == 0 {
			errs = append(errs, field.Required(flavors.Index(i).Key(v1beta1.CapabilityArchitecture),
				"there are several architectures in spec.machineCapabilities"))
		}
		if len(defined) > 0 {
			errs = append(errs, validateCapabilityValues(flavor, defined, flavors.Index(i))...)
		}
	}
	return errs
}

func semanticVersion(version string, path *field.Path) field.ErrorList {
	if errs := required(version, path); errs != nil {
		return errs
	}
	if _, err := semver.NewVersion(version); err != nil {
		return field.ErrorList{field.Invalid(path, version, "must be a semantic version, such as 1.2.3")}
	}
	return nil
}

func validateRuntimes(runtimes []v1beta1.CRI, path *field.Path) field.ErrorList {
	if len(runtimes) == 0 {
		return field.ErrorList{field.Required(path, "at least one is required")}
	}
	errs := unique(runtimes, path, "name", func(runtime v1beta1.CRI) string { return string(runtime.Name) })
	for i := range runtimes {
		errs = append(errs, validateCRI(&runtimes[i], path.Index(i))...)
	}
	return errs
}

func validateCRI(runtime *v1beta1.CRI, path *field.Path) field.ErrorList {
	errs := oneOf(runtime.Name, path.Child("name"), v1beta1.CRINameContainerD)
	at := path.Child("containerRuntimes")
	errs = append(errs, unique(runtime.ContainerRuntimes, at, "type", func(one v1beta1.ContainerRuntime) string { return one.Type })...)
	for i, one := range runtime.ContainerRuntimes {
		errs = append(errs, unprefixedName(one.Type, at.Index(i).Child("type"))...)
	}
	return errs
}

func validateBastion(spec *v1beta1.CloudProfileSpec, path *field.Path) field.ErrorList {
	bastion := spec.Bastion
	if bastion.MachineImage == nil && bastion.MachineType == nil {
		return field.ErrorList{field.Invalid(path, "", "must have machineImage or machineType")}
	}
	var (
		errs         field.ErrorList
		architecture *string
	)
	if bastion.MachineType != nil {
		i := slices.IndexFunc(spec.MachineTypes, func(one v1beta1.MachineType) bool { return one.Name == bastion.MachineType.Name })
		if i < 0 {
			errs = append(errs, field.NotFound(path.Child("machineType", "name"), bastion.MachineType.Name))
		} else {
			architecture = spec.MachineTypes[i].Architecture
		}
	}
	if bastion.MachineImage == nil {
		return errs
	}
	i := slices.IndexFunc(spec.MachineImages, func(one v1beta1.MachineImage) bool { return one.Name == bastion.MachineImage.Name })
	if i < 0 {
		return append(errs, field.NotFound(path.Child("machineImage", "name"), bastion.MachineImage.Name))
	}
	fits := func(version v1beta1.MachineImageVersion) bool {
		if bastion.MachineImage.Version != nil && version.Version != *bastion.MachineImage.Version {
			return false
		}
		supported := version.Classification == nil && bastion.MachineImage.Version == nil ||
			ptr.Deref(version.Classification, "") == v1beta1.ClassificationSupported
		return supported && (architecture == nil || slices.Contains(version.Architectures, *architecture))
	}
	if !slices.ContainsFunc(spec.MachineImages[i].Versions, fits) {
		errs = append(errs, field.Invalid(path.Child("machineImage"), bastion.MachineImage.Name,
			"has no supported version for the architecture of the machine type"))
	}
	return errs
}
