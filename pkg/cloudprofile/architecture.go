package cloudprofile

import (
	"slices"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// defaultArchitecture returns the architecture of machine types that do not state one.
func defaultArchitecture(defined []corev1beta1.CapabilityDefinition) *string {
	all := corev1beta1.ArchitecturesOf(nil, defined)
	if len(all) == 0 || slices.Contains(all, corev1beta1.ArchitectureAMD64) {
		return ptr.To(corev1beta1.ArchitectureAMD64)
	}
	return &all[0]
}

// SyncMachineType sets the architecture of a machine type from its capabilities. If it migrates, it gets the capability from its
// architecture first. before is the architecture before an update. It keeps an architecture that an update set and that contradicts the
// capabilities, because validation reports it.
func SyncMachineType(
	machine *corev1beta1.MachineType, before *string, migrates bool, defined []corev1beta1.CapabilityDefinition,
) {
	const capability = corev1beta1.CapabilityArchitecture
	if migrates && len(machine.Capabilities[capability]) == 0 {
		if machine.Architecture == nil {
			machine.Architecture = defaultArchitecture(defined)
		}
		if machine.Capabilities == nil {
			machine.Capabilities = corev1beta1.Capabilities{}
		}
		machine.Capabilities[capability] = corev1beta1.CapabilityValues{*machine.Architecture}
	}
	found := corev1beta1.ArchitecturesOf([]corev1beta1.Capabilities{machine.Capabilities}, defined)
	if len(found) == 1 && (machine.Architecture == nil || ptr.Equal(machine.Architecture, before)) {
		machine.Architecture = &found[0]
	}
}

// SyncImageVersion syncs a version of a machine image in the same way. Each architecture becomes a flavor.
func SyncImageVersion(
	version *corev1beta1.MachineImageVersion, before []string, migrates bool, defined []corev1beta1.CapabilityDefinition,
) {
	if migrates && len(version.CapabilityFlavors) == 0 {
		for _, architecture := range version.Architectures {
			version.CapabilityFlavors = append(version.CapabilityFlavors, corev1beta1.Capabilities{
				corev1beta1.CapabilityArchitecture: {architecture},
			})
		}
	}
	found := corev1beta1.ArchitecturesOf(version.CapabilityFlavors, defined)
	given := slices.Sorted(slices.Values(version.Architectures))
	if !slices.Equal(given, found) && (len(given) == 0 || slices.Equal(version.Architectures, before)) {
		version.Architectures = found
	}
}
