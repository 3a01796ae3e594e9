package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CloudProfileConfig is the provider configuration of a CloudProfile.
// +kubebuilder:object:root=true
type CloudProfileConfig struct {
	metav1.TypeMeta `json:",inline"`
	// MachineImages are the container images of the machine images that the CloudProfile offers.
	// +optional
	MachineImages []MachineImages `json:"machineImages,omitempty"`
}

// MachineImages are the versions of a machine image.
type MachineImages struct {
	// Name is the name of the machine image in the CloudProfile.
	Name string `json:"name"`
	// Versions are its versions.
	Versions []MachineImageVersion `json:"versions"`
}

// MachineImageVersion is a version of a machine image.
type MachineImageVersion struct {
	// Version is the version in the CloudProfile.
	Version string `json:"version"`
	// Image is the container image that machines of this version run.
	Image string `json:"image"`
}
