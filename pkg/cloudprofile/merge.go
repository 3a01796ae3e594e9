package cloudprofile

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Merge returns the specification of a CloudProfile with the changes of a NamespacedCloudProfile, and with defaults. The rules are
// Gardener's: the order of the parent remains, and what is new follows it. providerConfig is that of the parent, because only the
// extension of the provider understands it. The arguments are not changed.
func Merge(parent *corev1beta1.CloudProfileSpec, own *corev1beta1.NamespacedCloudProfileSpec) corev1beta1.CloudProfileSpec {
	merged, own := parent.DeepCopy(), own.DeepCopy()
	if own.CABundle != nil {
		merged.CABundle = concatenated(merged.CABundle, *own.CABundle)
	}
	if own.Kubernetes != nil {
		mergeVersions(merged.Kubernetes.Versions, own.Kubernetes.Versions)
	}
	defined := merged.MachineCapabilities
	for i := range own.MachineImages {
		for j := range own.MachineImages[i].Versions {
			adaptImageVersion(&own.MachineImages[i].Versions[j], defined)
		}
		merged.MachineImages = mergeImage(merged.MachineImages, own.MachineImages[i])
	}
	for i := range own.MachineTypes {
		adaptMachineType(&own.MachineTypes[i], defined)
		merged.MachineTypes = overrideOrAppend(merged.MachineTypes, own.MachineTypes[i], func(machine corev1beta1.MachineType) string { return machine.Name })
	}
	for _, volume := range own.VolumeTypes {
		merged.VolumeTypes = overrideOrAppend(merged.VolumeTypes, volume, func(volume corev1beta1.VolumeType) string { return volume.Name })
	}
	if own.Limits != nil && ptr.Deref(own.Limits.MaxNodesTotal, 0) > 0 {
		if merged.Limits == nil {
			merged.Limits = &corev1beta1.Limits{}
		}
		merged.Limits.MaxNodesTotal = own.Limits.MaxNodesTotal
	}
	profile := &corev1beta1.CloudProfile{Spec: *merged}
	corev1beta1.SetDefaultsCloudProfile(profile)
	return profile.Spec
}

// concatenated returns the certificates of both bundles.
func concatenated(parent *string, own string) *string {
	if ptr.Deref(parent, "") == "" {
		return &own
	}
	return ptr.To(strings.TrimSuffix(*parent, "\n") + "\n" + own)
}

// mergeVersions changes when versions of Kubernetes expire. Versions that the parent does not have are ignored.
func mergeVersions(versions, own []corev1beta1.ExpirableVersion) {
	for i := range own {
		if at := indexOfVersion(versions, own[i].Version); at >= 0 {
			expire(&versions[at], &own[i])
		}
	}
}

func indexOfVersion(versions []corev1beta1.ExpirableVersion, version string) int {
	return slices.IndexFunc(versions, func(one corev1beta1.ExpirableVersion) bool { return one.Version == version })
}

// expire replaces the expiration of a version. A lifecycle replaces all of it. A date becomes the beginning of the stage expired if the
// version has a lifecycle, because versions with a lifecycle cannot have a date.
func expire(version, own *corev1beta1.ExpirableVersion) {
	switch {
	case len(own.Lifecycle) > 0:
		version.Lifecycle, version.ExpirationDate, version.Classification = own.Lifecycle, nil, nil
	case len(version.Lifecycle) > 0:
		version.Lifecycle = expiring(version.Lifecycle, own.ExpirationDate)
	default:
		version.ExpirationDate = own.ExpirationDate
	}
}

// expiring returns the stages of a lifecycle that ends at a time, or that does not end.
func expiring(stages []corev1beta1.LifecycleStage, end *metav1.Time) []corev1beta1.LifecycleStage {
	stages = slices.DeleteFunc(stages, func(stage corev1beta1.LifecycleStage) bool {
		return stage.Classification == corev1beta1.ClassificationExpired
	})
	if end == nil {
		return stages
	}
	return append(stages, corev1beta1.LifecycleStage{Classification: corev1beta1.ClassificationExpired, StartTime: end})
}

// mergeImage adds an image, or changes the image with the same name.
func mergeImage(images []corev1beta1.MachineImage, own corev1beta1.MachineImage) []corev1beta1.MachineImage {
	at := slices.IndexFunc(images, func(image corev1beta1.MachineImage) bool { return image.Name == own.Name })
	if at < 0 {
		return append(images, own)
	}
	image := &images[at]
	if own.UpdateStrategy != nil {
		image.UpdateStrategy = own.UpdateStrategy
	}
	for i := range own.Versions {
		version := &own.Versions[i]
		existing := slices.IndexFunc(image.Versions, func(one corev1beta1.MachineImageVersion) bool { return one.Version == version.Version })
		switch {
		case existing < 0:
			image.Versions = append(image.Versions, *version)
		case OverridesOnlyExpiration(version):
			expire(&image.Versions[existing].ExpirableVersion, &version.ExpirableVersion)
		default:
			image.Versions[existing] = *version
		}
	}
	return images
}

// OverridesOnlyExpiration reports whether a version of a machine image states only when it expires.
func OverridesOnlyExpiration(version *corev1beta1.MachineImageVersion) bool {
	return len(version.Architectures)+len(version.CapabilityFlavors)+len(version.CRI) == 0 &&
		version.KubeletVersionConstraint == nil && version.Classification == nil
}

// overrideOrAppend replaces the element with the same name, or adds one.
func overrideOrAppend[T any](all []T, own T, nameOf func(T) string) []T {
	if at := slices.IndexFunc(all, func(one T) bool { return nameOf(one) == nameOf(own) }); at >= 0 {
		all[at] = own
		return all
	}
	return append(all, own)
}

// adaptImageVersion states the architectures of a version in the way of the parent: as flavors if the parent defines capabilities,
// otherwise without. Versions that state nothing about architectures remain as they are.
func adaptImageVersion(version *corev1beta1.MachineImageVersion, defined []corev1beta1.CapabilityDefinition) {
	switch {
	case OverridesOnlyExpiration(version) && version.InPlaceUpdates == nil:
	case len(defined) > 0:
		SyncImageVersion(version, nil, true, defined)
	case len(version.CapabilityFlavors) > 0:
		if len(version.Architectures) == 0 {
			version.Architectures = corev1beta1.ArchitecturesOf(version.CapabilityFlavors, nil)
		}
		version.CapabilityFlavors = nil
	}
}

// adaptMachineType states the architecture of a machine type in the way of the parent.
func adaptMachineType(machine *corev1beta1.MachineType, defined []corev1beta1.CapabilityDefinition) {
	if len(defined) > 0 {
		SyncMachineType(machine, nil, true, defined)
		return
	}
	if values := machine.Capabilities[corev1beta1.CapabilityArchitecture]; machine.Architecture == nil && len(values) > 0 {
		machine.Architecture = &values[0]
	}
	machine.Capabilities = nil
}
