package validation

import (
	"github.com/Masterminds/semver/v3"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ValidateNamespacedCloudProfile checks a NamespacedCloudProfile. Rules that depend on its parent are checked at
// admission.
func ValidateNamespacedCloudProfile(profile *v1beta1.NamespacedCloudProfile) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&profile.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, path := &profile.Spec, field.NewPath("spec")
	errs = append(errs, oneOf(spec.Parent.Kind, path.Child("parent", "kind"), v1beta1.CloudProfileReferenceKindCloudProfile)...)
	errs = append(errs, required(spec.Parent.Name, path.Child("parent", "name"))...)
	errs = append(errs, certificates(spec.CABundle, path.Child("caBundle"))...)
	if spec.Kubernetes != nil {
		errs = append(errs, validateVersionOverrides(spec.Kubernetes.Versions, path.Child("kubernetes", "versions"))...)
	}
	errs = append(errs, validateImageOverrides(spec.MachineImages, path.Child("machineImages"))...)
	errs = append(errs, validateMachineTypes(withoutCapabilities(spec.MachineTypes), nil, path.Child("machineTypes"))...)
	errs = append(errs, validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes"))...)
	if limit := maxNodes(spec.Limits); limit != nil && *limit <= 0 {
		errs = append(errs, field.Invalid(path.Child("limits", "maxNodesTotal"), *limit, "must be positive"))
	}
	return errs
}

// ValidateNamespacedCloudProfileUpdate checks a NamespacedCloudProfile that replaces another.
func ValidateNamespacedCloudProfileUpdate(profile, old *v1beta1.NamespacedCloudProfile) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&profile.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(profile.Spec.Parent, old.Spec.Parent, field.NewPath("spec", "parent"))...)
	return append(errs, ValidateNamespacedCloudProfile(profile)...)
}

// validateVersionOverrides checks the versions of Kubernetes of the parent whose expiration is overridden.
func validateVersionOverrides(versions []v1beta1.ExpirableVersion, path *field.Path) field.ErrorList {
	errs := unique(versions, path, "version", func(version v1beta1.ExpirableVersion) string { return version.Version })
	for i := range versions {
		version, at := &versions[i], path.Index(i)
		if !kubernetesVersion.MatchString(version.Version) {
			errs = append(errs, field.Invalid(at.Child("version"), version.Version, "must be a version such as 1.34.2"))
		}
		if version.Classification != nil {
			errs = append(errs, field.Forbidden(at.Child("classification"), "the classification is that of the parent"))
			continue
		}
		errs = append(errs, validateExpiration(version, at)...)
	}
	return errs
}

// validateImageOverrides checks machine images. They may add to the parent's images of the same name, or be new.
func validateImageOverrides(images []v1beta1.MachineImage, path *field.Path) field.ErrorList {
	errs := unique(images, path, "name", func(image v1beta1.MachineImage) string { return image.Name })
	for i, image := range images {
		at, versions := path.Index(i), path.Index(i).Child("versions")
		errs = append(errs, unprefixedName(image.Name, at.Child("name"))...)
		errs = append(errs, optionalOneOf(image.UpdateStrategy, at.Child("updateStrategy"),
			v1beta1.UpdateStrategyPatch, v1beta1.UpdateStrategyMinor, v1beta1.UpdateStrategyMajor)...)
		errs = append(errs, unique(image.Versions, versions, "version",
			func(version v1beta1.MachineImageVersion) string { return version.Version })...)
		for j := range image.Versions {
			errs = append(errs, validateImageVersionOverride(&image.Versions[j], versions.Index(j))...)
		}
	}
	return errs
}

func validateImageVersionOverride(version *v1beta1.MachineImageVersion, path *field.Path) field.ErrorList {
	errs := validateExpiration(&version.ExpirableVersion, path)
	errs = append(errs, semanticVersion(version.Version, path.Child("version"))...)
	if len(version.CRI) > 0 {
		errs = append(errs, validateRuntimes(version.CRI, path.Child("cri"))...)
	}
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
	return errs
}

// withoutCapabilities returns machine types without their capabilities, which the parent defines.
func withoutCapabilities(machines []v1beta1.MachineType) []v1beta1.MachineType {
	copies := make([]v1beta1.MachineType, len(machines))
	for i, machine := range machines {
		machine.Capabilities = nil
		copies[i] = machine
	}
	return copies
}
