package core

import (
	"slices"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
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
		cloudprofile.SyncMachineType(machine, before, migrates, spec.MachineCapabilities)
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
			cloudprofile.SyncImageVersion(version, before, migrates, spec.MachineCapabilities)
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

func architecturesOfVersion(image *gardencorev1beta1.MachineImage, version string) []string {
	i := slices.IndexFunc(image.Versions, func(one gardencorev1beta1.MachineImageVersion) bool { return one.Version == version })
	if i < 0 {
		return nil
	}
	return image.Versions[i].Architectures
}
