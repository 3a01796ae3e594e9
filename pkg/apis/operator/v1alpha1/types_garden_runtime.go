package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// RuntimeCluster is the cluster in which a garden runs.
type RuntimeCluster struct {
	// Ingress is the domains and the controller for Ingresses.
	Ingress Ingress `json:"ingress"`
	// Networking is the networks of the cluster.
	Networking RuntimeNetworking `json:"networking"`
	// Provider is the infrastructure of the cluster.
	Provider Provider `json:"provider"`
	// Settings holds the settings of what runs in the cluster.
	// +optional
	Settings *Settings `json:"settings,omitempty"`
	// Volume holds the settings of volumes.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
}

// Ingress are the domains and the controller for Ingresses.
type Ingress struct {
	// Domains are the domains. The name of the first one is immutable.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:XValidation:rule="self[0].name == oldSelf[0].name",message="the name of the first domain is immutable"
	Domains []DNSDomain `json:"domains,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Controller is the controller.
	// +kubebuilder:validation:XValidation:rule="self.kind == 'nginx'",message="kind must be nginx"
	Controller gardencorev1beta1.IngressController `json:"controller"`
}

// RuntimeNetworking are the networks of a cluster. They must not overlap.
type RuntimeNetworking struct {
	// IPFamilies are the IP families, the primary one first. Default: IPv4.
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0] != self[1]",message="must not have a family twice"
	// +kubebuilder:default={"IPv4"}
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
	// Nodes are the ranges of nodes, in CIDR notation. They can only be added to.
	// +listType=atomic
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// Pods are the ranges of pods, in CIDR notation. They can only be added to.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Pods []string `json:"pods"`
	// Services are the ranges of Services, in CIDR notation. They can only be added to.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Services []string `json:"services"`
	// BlockCIDRs are the ranges that components cannot reach, in CIDR notation.
	// +listType=atomic
	// +optional
	BlockCIDRs []string `json:"blockCIDRs,omitempty"`
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

// Provider is the infrastructure of a cluster.
type Provider struct {
	// Region is the region.
	// +optional
	Region *string `json:"region,omitempty"`
	// Zones are the zones over which components can be spread.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
}

// Settings holds the settings of what runs in a cluster.
type Settings struct {
	// LoadBalancerServices holds the settings of Services of type LoadBalancer.
	// +optional
	LoadBalancerServices *SettingLoadBalancerServices `json:"loadBalancerServices,omitempty"`
	// VerticalPodAutoscaler holds the settings of the Vertical Pod Autoscaler.
	// +optional
	VerticalPodAutoscaler *SettingVerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`
	// TopologyAwareRouting defines whether traffic is kept in its zone.
	// +optional
	TopologyAwareRouting *SettingTopologyAwareRouting `json:"topologyAwareRouting,omitempty"`
	// PersistentVolumeClaimAutoscaler defines whether volumes grow automatically.
	// +optional
	PersistentVolumeClaimAutoscaler *SettingPersistentVolumeClaimAutoscaler `json:"persistentVolumeClaimAutoscaler,omitempty"`
}

// SettingLoadBalancerServices holds the settings of Services of type LoadBalancer.
type SettingLoadBalancerServices struct {
	// Annotations are the annotations of the Services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// ExternalTrafficPolicy is the policy for traffic from outside of the cluster. In effect without a value: Cluster.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// ProxyProtocol defines whether the PROXY protocol is accepted.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty"`
}

// LoadBalancerServicesProxyProtocol defines whether load balancers may use the PROXY protocol.
type LoadBalancerServicesProxyProtocol struct {
	// Allowed defines whether they may.
	Allowed bool `json:"allowed"`
}

// SettingVerticalPodAutoscaler holds the settings of the Vertical Pod Autoscaler.
type SettingVerticalPodAutoscaler struct {
	// Enabled defines whether it is installed. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// FeatureGates are the feature gates that are switched on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// MaxAllowed are the most CPU and memory that is recommended.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
}

// SettingTopologyAwareRouting defines whether traffic is kept in its zone.
type SettingTopologyAwareRouting struct {
	// Enabled defines whether it is.
	Enabled bool `json:"enabled"`
}

// SettingPersistentVolumeClaimAutoscaler defines whether volumes grow automatically.
type SettingPersistentVolumeClaimAutoscaler struct {
	// Enabled defines whether they do.
	Enabled bool `json:"enabled"`
}

// Volume holds the settings of volumes.
type Volume struct {
	// MinimumSize is the size below which no volume is created.
	// +optional
	MinimumSize *resource.Quantity `json:"minimumSize,omitempty"`
}
