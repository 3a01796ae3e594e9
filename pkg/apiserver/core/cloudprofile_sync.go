package core

import (
	"slices"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// syncArchitectures sets the architectures of machine types and images in a profile with capabilities from their
// capabilities. When a profile gets capabilities, it fills these from the architectures instead. When a profile loses its
// capabilities, so do its machine types and images.
func syncArchitectures(spec, old *gardencorev1beta1.CloudProfileSpec) {
	if len(spec.MachineCapabilities) == 0 {
		if len(old.MachineCapabilities) > 0 {
			removeCapabilities(spec)
		}
		return
	}
	migrates := len(old.MachineCapabilities) == 0
	for i := range spec.MachineTypes {
		machine := &spec.MachineTypes[i]
		j := slices.IndexFunc(old.MachineTypes, func(one gardencorev1beta1.MachineType) bool { return one.Name == machine.Name })
		var before *string
		if j >= 0 {
			before = old.MachineTypes[j].Architecture
		}
		syncMachineType(machine, before, migrates, spec.MachineCapabilities)
	}
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		j := slices.IndexFunc(old.MachineImages, func(one gardencorev1beta1.MachineImage) bool { return one.Name == image.Name })
		for k := range image.Versions {
			version := &image.Versions[k]
			var before []string
			if j >= 0 {
				before = architecturesOfVersion(&old.MachineImages[j], version.Version)
			}
			syncImageVersion(version, before, migrates, spec.MachineCapabilities)
		}
	}
}

func removeCapabilities(spec *gardencorev1beta1.CloudProfileSpec) {
	for i := range spec.MachineTypes {
		spec.MachineTypes[i].Capabilities = nil
	}
	for i := range spec.MachineImages {
		for j := range spec.MachineImages[i].Versions {
			spec.MachineImages[i].Versions[j].CapabilityFlavors = nil
		}
	}
}

// defaultArchitecture returns the architecture of machine types that do not state one.
func defaultArchitecture(defined []gardencorev1beta1.CapabilityDefinition) *string {
	all := gardencorev1beta1.ArchitecturesOf(nil, defined)
	if len(all) == 0 || slices.Contains(all, gardencorev1beta1.ArchitectureAMD64) {
		return copyOf(gardencorev1beta1.ArchitectureAMD64)
	}
	return &all[0]
}

func architecturesOfVersion(image *gardencorev1beta1.MachineImage, version string) []string {
	i := slices.IndexFunc(image.Versions, func(one gardencorev1beta1.MachineImageVersion) bool { return one.Version == version })
	if i < 0 {
		return nil
	}
	return image.Versions[i].Architectures
}

// syncMachineType syncs a machine type. It keeps an architecture that an update set and that contradicts the
// capabilities, because validation reports it.
func syncMachineType(
	machine *gardencorev1beta1.MachineType, before *string, migrates bool, defined []gardencorev1beta1.CapabilityDefinition,
) {
	const capability = gardencorev1beta1.CapabilityArchitecture
	if migrates && len(machine.Capabilities[capability]) == 0 {
		if machine.Architecture == nil {
			machine.Architecture = defaultArchitecture(defined)
		}
		if machine.Capabilities == nil {
			machine.Capabilities = gardencorev1beta1.Capabilities{}
		}
		machine.Capabilities[capability] = gardencorev1beta1.CapabilityValues{*machine.Architecture}
	}
	found := gardencorev1beta1.ArchitecturesOf([]gardencorev1beta1.Capabilities{machine.Capabilities}, defined)
	if len(found) == 1 && (machine.Architecture == nil || text(machine.Architecture) == text(before)) {
		machine.Architecture = &found[0]
	}
}

// syncImageVersion syncs a version of a machine image in the same way. Each architecture becomes a flavor.
func syncImageVersion(
	version *gardencorev1beta1.MachineImageVersion, before []string, migrates bool, defined []gardencorev1beta1.CapabilityDefinition,
) {
	if migrates && len(version.CapabilityFlavors) == 0 {
		for _, architecture := range version.Architectures {
			version.CapabilityFlavors = append(version.CapabilityFlavors, gardencorev1beta1.Capabilities{
				gardencorev1beta1.CapabilityArchitecture: {architecture},
			})
		}
	}
	found := gardencorev1beta1.ArchitecturesOf(version.CapabilityFlavors, defined)
	given := slices.Sorted(slices.Values(version.Architectures))
	if !slices.Equal(given, found) && (len(given) == 0 || slices.Equal(version.Architectures, before)) {
		version.Architectures = found
	}
}
