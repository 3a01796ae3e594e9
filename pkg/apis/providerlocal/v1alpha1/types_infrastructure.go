package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InfrastructureConfig is the provider configuration of an Infrastructure, from the field infrastructureConfig of a Shoot.
// +kubebuilder:object:root=true
type InfrastructureConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Networks overrides network ranges of the Shoot.
	// +optional
	Networks *Networks `json:"networks,omitempty"`
}

// Networks are network ranges.
type Networks struct {
	// Nodes is the range of the machines' addresses, in CIDR notation. In effect without a value: the range of nodes of the Shoot, otherwise that
	// of the Pods of the Seed, from which machines get their addresses.
	// +optional
	Nodes *string `json:"nodes,omitempty"`
}

// InfrastructureStatus is the provider status of an Infrastructure.
// +kubebuilder:object:root=true
type InfrastructureStatus struct {
	metav1.TypeMeta `json:",inline"`
	// Namespace is the namespace of the seed in which machines and bastions run.
	Namespace string `json:"namespace"`
	// Simulated is set if the machines are nodes that KWOK simulates.
	// +optional
	Simulated bool `json:"simulated,omitempty"`
}
