package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Network asks an extension for the network of pods.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Pod CIDR",type=string,JSONPath=`.spec.podCIDR`,description="The range of pods"
// +kubebuilder:printcolumn:name="Service CIDR",type=string,JSONPath=`.spec.serviceCIDR`,description="The range of Services"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec NetworkSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status NetworkStatus `json:"status,omitempty"`
}

// NetworkList is a list of Network objects.
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Network `json:"items"`
}

// NetworkSpec is the desired state of a Network.
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.podCIDR) || !isCIDR(self.serviceCIDR) || (has(self.ipFamilies) && self.ipFamilies == ['IPv6']) || !(cidr(self.podCIDR).containsIP(cidr(self.serviceCIDR).ip()) || cidr(self.serviceCIDR).containsIP(cidr(self.podCIDR).ip()))",message="podCIDR and serviceCIDR must not overlap"
type NetworkSpec struct {
	DefaultSpec `json:",inline"`
	// PodCIDR is the range of pods, in CIDR notation. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of addresses in CIDR notation"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	PodCIDR string `json:"podCIDR"`
	// ServiceCIDR is the range of Services, in CIDR notation. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of addresses in CIDR notation"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	ServiceCIDR string `json:"serviceCIDR"`
	// IPFamilies are the IP families, the primary one first.
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0] != self[1]",message="must not have a family twice"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || (self[0] == 'IPv4' && oldSelf[0] == 'IPv4')",message="can change between [IPv4] and [IPv4, IPv6] only"
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}

// IPFamily is a family of IP addresses.
// +enum
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// The values of IPFamily.
const (
	// IPFamilyIPv4 is IP version 4.
	IPFamilyIPv4 IPFamily = "IPv4"
	// IPFamilyIPv6 is IP version 6.
	IPFamilyIPv6 IPFamily = "IPv6"
)

// NetworkStatus is the observed state of a Network.
type NetworkStatus struct {
	DefaultStatus `json:",inline"`
	// IPFamilies are the IP families that the network supports now.
	// +listType=atomic
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}
