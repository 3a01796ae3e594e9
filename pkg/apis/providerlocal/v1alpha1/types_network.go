package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkConfig is the provider configuration of a Network, from the field networking.providerConfig of a Shoot.
// +kubebuilder:object:root=true
type NetworkConfig struct {
	metav1.TypeMeta `json:",inline"`
	// NetworkPolicies defines whether NetworkPolicies are enforced on the nodes. In effect without a value: true.
	// +optional
	NetworkPolicies *bool `json:"networkPolicies,omitempty"`
}
