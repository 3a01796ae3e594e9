package cloudprofile

import (
	"slices"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// find returns the first item that matches, or nil.
func find[T any](items []T, matches func(*T) bool) *T {
	for i := range items {
		if matches(&items[i]) {
			return &items[i]
		}
	}
	return nil
}

// FindVersion returns a version of Kubernetes, or nil.
func FindVersion(spec *corev1beta1.CloudProfileSpec, version string) *corev1beta1.ExpirableVersion {
	return find(spec.Kubernetes.Versions, func(one *corev1beta1.ExpirableVersion) bool { return one.Version == version })
}

// FindMachineType returns a machine type, or nil.
func FindMachineType(spec *corev1beta1.CloudProfileSpec, name string) *corev1beta1.MachineType {
	return find(spec.MachineTypes, func(one *corev1beta1.MachineType) bool { return one.Name == name })
}

// FindVolumeType returns a volume type, or nil.
func FindVolumeType(spec *corev1beta1.CloudProfileSpec, name string) *corev1beta1.VolumeType {
	return find(spec.VolumeTypes, func(one *corev1beta1.VolumeType) bool { return one.Name == name })
}

// FindRegion returns a region, or nil.
func FindRegion(spec *corev1beta1.CloudProfileSpec, name string) *corev1beta1.Region {
	return find(spec.Regions, func(one *corev1beta1.Region) bool { return one.Name == name })
}

// FindZone returns a zone of a region, or nil. The region can be nil.
func FindZone(region *corev1beta1.Region, name string) *corev1beta1.AvailabilityZone {
	if region == nil {
		return nil
	}
	return find(region.Zones, func(one *corev1beta1.AvailabilityZone) bool { return one.Name == name })
}

// FindImage returns a machine image, or nil.
func FindImage(spec *corev1beta1.CloudProfileSpec, name string) *corev1beta1.MachineImage {
	return find(spec.MachineImages, func(one *corev1beta1.MachineImage) bool { return one.Name == name })
}

// FindImageVersion returns a version of a machine image, or nil. The image can be nil.
func FindImageVersion(image *corev1beta1.MachineImage, version string) *corev1beta1.MachineImageVersion {
	if image == nil {
		return nil
	}
	return find(image.Versions, func(one *corev1beta1.MachineImageVersion) bool { return one.Version == version })
}

// ArchitecturesOf returns the architectures of a machine type.
func ArchitecturesOf(spec *corev1beta1.CloudProfileSpec, machine *corev1beta1.MachineType) []string {
	if len(spec.MachineCapabilities) > 0 {
		return corev1beta1.ArchitecturesOf([]corev1beta1.Capabilities{machine.Capabilities}, spec.MachineCapabilities)
	}
	if machine.Architecture != nil {
		return []string{*machine.Architecture}
	}
	return []string{corev1beta1.ArchitectureAMD64}
}

// Runs reports whether a version of a machine image runs on a machine type with an architecture. In a profile with capabilities, one
// flavor of the version must have a value in common with the machine type for each capability.
func Runs(
	spec *corev1beta1.CloudProfileSpec, version *corev1beta1.MachineImageVersion, machine *corev1beta1.MachineType, architecture string,
) bool {
	if len(spec.MachineCapabilities) == 0 {
		architectures := version.Architectures
		if len(architectures) == 0 {
			architectures = []string{corev1beta1.ArchitectureAMD64}
		}
		return slices.Contains(architectures, architecture)
	}
	flavors := version.CapabilityFlavors
	if len(flavors) == 0 {
		flavors = []corev1beta1.Capabilities{nil}
	}
	return slices.ContainsFunc(flavors, func(flavor corev1beta1.Capabilities) bool {
		return !slices.ContainsFunc(spec.MachineCapabilities, func(defined corev1beta1.CapabilityDefinition) bool {
			wanted := valuesOf(machine.Capabilities, defined)
			if defined.Name == corev1beta1.CapabilityArchitecture {
				wanted = corev1beta1.CapabilityValues{architecture}
			}
			return !slices.ContainsFunc(valuesOf(flavor, defined), func(value string) bool { return slices.Contains(wanted, value) })
		})
	})
}

// valuesOf returns the values of a capability. Without values, these are all that the profile defines.
func valuesOf(capabilities corev1beta1.Capabilities, defined corev1beta1.CapabilityDefinition) corev1beta1.CapabilityValues {
	if values := capabilities[defined.Name]; len(values) > 0 {
		return values
	}
	return defined.Values
}
