package v1beta1

import (
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaultsCloudProfile sets the defaults of a CloudProfile.
func SetDefaultsCloudProfile(profile *CloudProfile) {
	spec := &profile.Spec
	withoutCapabilities := len(spec.MachineCapabilities) == 0
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		defaulting.Pointer(&image.UpdateStrategy, UpdateStrategyMajor)
		for j := range image.Versions {
			version := &image.Versions[j]
			if len(version.CRI) == 0 {
				version.CRI = []CRI{{Name: CRINameContainerD}}
			}
			if withoutCapabilities && len(version.Architectures) == 0 {
				version.Architectures = []string{ArchitectureAMD64}
			}
		}
	}
	for i := range spec.MachineTypes {
		if withoutCapabilities {
			defaulting.Pointer(&spec.MachineTypes[i].Architecture, ArchitectureAMD64)
		}
	}
	setDefaultsUsable(spec.MachineTypes, spec.VolumeTypes)
}

// SetDefaultsNamespacedCloudProfile sets the defaults of a NamespacedCloudProfile. Missing fields of its machine images
// come from the parent.
func SetDefaultsNamespacedCloudProfile(profile *NamespacedCloudProfile) {
	setDefaultsUsable(profile.Spec.MachineTypes, profile.Spec.VolumeTypes)
}

func setDefaultsUsable(machines []MachineType, volumes []VolumeType) {
	for i := range machines {
		defaulting.Pointer(&machines[i].Usable, true)
	}
	for i := range volumes {
		defaulting.Pointer(&volumes[i].Usable, true)
	}
}
