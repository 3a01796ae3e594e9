package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// OperatingSystemConfigStatus is the observed state of an OperatingSystemConfig.
type OperatingSystemConfigStatus struct {
	DefaultStatus `json:",inline"`
	// ExtensionUnits are the units that the extension adds.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	ExtensionUnits []Unit `json:"extensionUnits,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// ExtensionFiles are the files that the extension adds.
	// +listType=atomic
	// +optional
	ExtensionFiles []File `json:"extensionFiles,omitempty"`
	// CloudConfig refers to the user data for new machines. Only for the purpose provision.
	// +optional
	CloudConfig *CloudConfig `json:"cloudConfig,omitempty"`
	// InPlaceUpdates reports how the operating system is updated in place.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
}

// CloudConfig refers to user data for new machines.
type CloudConfig struct {
	// SecretRef refers to a Secret with the user data under the key cloud_config.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// InPlaceUpdatesStatus reports how nodes are updated in place.
type InPlaceUpdatesStatus struct {
	// OSUpdate reports how the operating system is updated.
	// +optional
	OSUpdate *OSUpdate `json:"osUpdate,omitempty"`
}

// OSUpdate reports how an operating system is updated.
type OSUpdate struct {
	// Command is the command that updates it.
	Command string `json:"command"`
	// Args are the arguments of the command.
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`
}
