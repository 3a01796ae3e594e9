package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Networking is the network of a cluster.
type Networking struct {
	// Type is the type of the network, which the extension for it knows. It is immutable.
	// +optional
	Type *string `json:"type,omitempty"`
	// ProviderConfig is the configuration of the network extension, in a format of its own.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Pods is the range of pods, in CIDR notation. It is immutable once set.
	// +optional
	Pods *string `json:"pods,omitempty"`
	// Nodes is the range of nodes, in CIDR notation.
	// +optional
	Nodes *string `json:"nodes,omitempty"`
	// Services is the range of Services, in CIDR notation. It is immutable once set.
	// +optional
	Services *string `json:"services,omitempty"`
	// IPFamilies are the IP families of the cluster, the primary one first. Default: IPv4.
	// +listType=atomic
	// +optional
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
