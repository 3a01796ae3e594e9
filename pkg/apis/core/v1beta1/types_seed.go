package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Seed is a cluster that hosts the control planes of Shoots.
// +kubebuilder:object:root=true
type Seed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec SeedSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status SeedStatus `json:"status,omitempty"`
}

// SeedList is a list of Seed objects.
// +kubebuilder:object:root=true
type SeedList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Seed `json:"items"`
}

// SeedSpec is the desired state of a Seed.
type SeedSpec struct {
	// Backup configures where backups of control planes are stored. It cannot be removed once set.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
	// DNS is the domains and DNS accounts of the Seed.
	DNS SeedDNS `json:"dns"`
	// Networks is the networks of the Seed.
	Networks SeedNetworks `json:"networks"`
	// Provider is the infrastructure of the Seed.
	Provider SeedProvider `json:"provider"`
	// Taints keep Shoots away that do not tolerate them.
	// +listType=atomic
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Taints []SeedTaint `json:"taints,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
	// Volume holds the settings of volumes in the Seed.
	// +optional
	Volume *SeedVolume `json:"volume,omitempty"`
	// Settings holds the settings of what runs in the Seed.
	// +optional
	Settings *SeedSettings `json:"settings,omitempty"`
	// Ingress is the domain and the controller for the Ingresses of the Seed.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty"`
	// AccessRestrictions are the restrictions of access that the Seed offers.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Extensions ask for extensions in the Seed by their types.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Extensions []Extension `json:"extensions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Resources name the Secrets, ConfigMaps and WorkloadIdentities that the extensions' configurations refer to.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// SeedStatus is the observed state of a Seed.
type SeedStatus struct {
	// Gardener is the gardenlet that is responsible for the Seed.
	// +optional
	Gardener *Gardener `json:"gardener,omitempty"`
	// KubernetesVersion is the version of Kubernetes of the cluster.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// Conditions describe the health of the Seed.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// ObservedGeneration is the generation that the gardenlet has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ClusterIdentity is the identity of the cluster. It is immutable once set.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty"`
	// Capacity is what the Seed offers, such as the number of Shoots.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is what the Seed offers to Shoots: its capacity without what is reserved.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// ClientCertificateExpirationTimestamp is the time until which the client certificate of the gardenlet is valid.
	// +optional
	ClientCertificateExpirationTimestamp *metav1.Time `json:"clientCertificateExpirationTimestamp,omitempty"`
	// LastOperation is the last operation.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
}

// SeedDNS are the domains and DNS accounts of a Seed.
type SeedDNS struct {
	// Provider is the account in which records for the Seed's Ingresses are kept.
	// +optional
	Provider *SeedDNSProvider `json:"provider,omitempty"`
	// Internal is the domain under which the control planes of Shoots are reached internally. It is required.
	// +optional
	Internal *SeedDNSProviderConfig `json:"internal,omitempty"`
	// Defaults are the domains for Shoots without a domain of their own, in the order of preference. Each Shoot gets a subdomain.
	// +listType=atomic
	// +optional
	Defaults []SeedDNSProviderConfig `json:"defaults,omitempty"`
}

// SeedDNSProvider is an account with a DNS service.
type SeedDNSProvider struct {
	// Type is the type of the DNS service.
	Type string `json:"type"`
	// CredentialsRef refers to the credentials: a Secret, an InternalSecret or a WorkloadIdentity.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
}

// SeedDNSProviderConfig is a domain and the DNS account that manages it.
type SeedDNSProviderConfig struct {
	// Type is the type of the DNS service.
	Type string `json:"type"`
	// Domain is the domain.
	Domain string `json:"domain"`
	// Zone is the zone of the DNS service in which the domain is.
	// +optional
	Zone *string `json:"zone,omitempty"`
	// CredentialsRef refers to the credentials: a Secret, an InternalSecret or a WorkloadIdentity.
	CredentialsRef corev1.ObjectReference `json:"credentialsRef"`
}

// SeedNetworks are the networks of a Seed. They must not overlap.
type SeedNetworks struct {
	// Nodes is the range of nodes, in CIDR notation. It is immutable once set.
	// +optional
	Nodes *string `json:"nodes,omitempty"`
	// Pods is the range of pods, in CIDR notation. It is immutable.
	Pods string `json:"pods"`
	// Services is the range of Services, in CIDR notation. It is immutable.
	Services string `json:"services"`
	// ShootDefaults is the ranges of Shoots that name none.
	// +optional
	ShootDefaults *ShootNetworks `json:"shootDefaults,omitempty"`
	// BlockCIDRs are the ranges that the control planes of Shoots cannot reach, in CIDR notation.
	// +listType=atomic
	// +optional
	BlockCIDRs []string `json:"blockCIDRs,omitempty"`
	// IPFamilies are the IP families of the Seed, the primary one first. It is immutable. Default: IPv4.
	// +listType=atomic
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}

// ShootNetworks are ranges for Shoots.
type ShootNetworks struct {
	// Pods is the range of pods, in CIDR notation.
	// +optional
	Pods *string `json:"pods,omitempty"`
	// Services is the range of Services, in CIDR notation.
	// +optional
	Services *string `json:"services,omitempty"`
}

// SeedProvider is the infrastructure of a Seed.
type SeedProvider struct {
	// Type is the type of the infrastructure.
	Type string `json:"type"`
	// ProviderConfig is the configuration of the infrastructure, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Region is the region.
	Region string `json:"region"`
	// Zones are the zones over which control planes can be spread.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
}

// SeedTaint keeps Shoots away that do not tolerate it.
type SeedTaint struct {
	// Key is the key of the taint.
	Key string `json:"key"`
	// Value is the value of the taint.
	// +optional
	Value *string `json:"value,omitempty"`
}

// SeedVolume holds the settings of volumes in a Seed.
type SeedVolume struct {
	// MinimumSize is the size below which no volume is created.
	// +optional
	MinimumSize *resource.Quantity `json:"minimumSize,omitempty"`
	// Providers are the providers of volumes.
	// +listType=atomic
	// +optional
	Providers []SeedVolumeProvider `json:"providers,omitempty"`
}

// SeedVolumeProvider is a provider of volumes.
type SeedVolumeProvider struct {
	// Purpose is what the volumes are for, unique in the list.
	Purpose string `json:"purpose"`
	// Name is the name of the provider.
	Name string `json:"name"`
}

// Ingress is the domain and the controller for Ingresses.
type Ingress struct {
	// Domain is the domain. It is immutable.
	Domain string `json:"domain"`
	// Controller is the controller.
	Controller IngressController `json:"controller"`
}

// IngressController is a controller for Ingresses.
type IngressController struct {
	// Kind is the kind of the controller. Only nginx is known.
	Kind string `json:"kind"`
	// ProviderConfig is the configuration of the controller, which becomes a ConfigMap.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}
