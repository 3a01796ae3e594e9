package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControlPlaneConfig is the provider configuration of a ControlPlane, from the field controlPlaneConfig of a Shoot.
// +kubebuilder:object:root=true
type ControlPlaneConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Storage configures the storage of the Shoot.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
}

// Storage configures the storage of a Shoot.
type Storage struct {
	// ManagedDefaultStorageClass defines whether the StorageClass that the extension creates is the default one. In effect without a value: true.
	// +optional
	ManagedDefaultStorageClass *bool `json:"managedDefaultStorageClass,omitempty"`
}
