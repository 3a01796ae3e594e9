package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Garden is the cluster that holds the API of the landscape, run in the cluster of the operator.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=grdn
// +kubebuilder:printcolumn:name="K8S Version",type=string,JSONPath=`.spec.virtualCluster.kubernetes.version`,description="The version of Kubernetes"
// +kubebuilder:printcolumn:name="Gardener Version",type=string,JSONPath=`.status.gardener.version`,description="The version of the operator"
// +kubebuilder:printcolumn:name="Last Operation",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.status.conditions[?(@.type=="RuntimeComponentsHealthy")].status`,description="Whether the components in the runtime cluster are healthy"
// +kubebuilder:printcolumn:name="Virtual",type=string,JSONPath=`.status.conditions[?(@.type=="VirtualComponentsHealthy")].status`,description="Whether the components of the virtual garden are healthy"
// +kubebuilder:printcolumn:name="API Server",type=string,JSONPath=`.status.conditions[?(@.type=="VirtualGardenAPIServerAvailable")].status`,description="Whether the API server answers"
// +kubebuilder:printcolumn:name="Observability",type=string,JSONPath=`.status.conditions[?(@.type=="ObservabilityComponentsHealthy")].status`,description="Whether the observability components are healthy"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Garden struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec GardenSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status GardenStatus `json:"status,omitempty"`
}

// GardenList is a list of Garden objects.
// +kubebuilder:object:root=true
type GardenList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Garden `json:"items"`
}

// GardenSpec is the desired state of a Garden.
// +kubebuilder:validation:XValidation:rule="!has(self.runtimeCluster.settings) || !has(self.runtimeCluster.settings.topologyAwareRouting) || !self.runtimeCluster.settings.topologyAwareRouting.enabled || (has(self.runtimeCluster.provider.zones) && size(self.runtimeCluster.provider.zones) > 1 && has(self.virtualCluster.controlPlane) && has(self.virtualCluster.controlPlane.highAvailability))",message="topologyAwareRouting needs at least two zones and a highly available control plane"
type GardenSpec struct {
	// DNS is the accounts with DNS services that keep the records of the garden.
	// +optional
	DNS *DNSManagement `json:"dns,omitempty"`
	// Extensions ask for extensions of the garden by their types.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Extensions []GardenExtension `json:"extensions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// RuntimeCluster is the cluster in which the garden runs.
	RuntimeCluster RuntimeCluster `json:"runtimeCluster"`
	// VirtualCluster is the cluster that the garden is.
	VirtualCluster VirtualCluster `json:"virtualCluster"`
	// Resources name the Secrets and ConfigMaps that the extensions' configurations refer to.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// DNSManagement are accounts with DNS services.
type DNSManagement struct {
	// Providers are the accounts.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +kubebuilder:validation:MinItems=1
	Providers []DNSProvider `json:"providers" patchStrategy:"merge" patchMergeKey:"name"`
}

// DNSProvider is an account with a DNS service.
type DNSProvider struct {
	// Name is the name by which domains refer to the account.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Type is the type of the DNS service.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// ProviderConfig is the configuration of the service, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// SecretRef refers to the Secret with the credentials.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
}

// DNSDomain is a domain and the account that manages it.
type DNSDomain struct {
	// Name is the domain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Provider is the name of the account. It is required when dns is set.
	// +optional
	Provider *string `json:"provider,omitempty"`
}

// GardenExtension requests an extension of the garden.
type GardenExtension struct {
	// Type is the type of the extension.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// ProviderConfig is the configuration of the extension, in a format of its own.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// GardenStatus is the observed state of a Garden.
type GardenStatus struct {
	// Gardener is the operator that acted on the Garden last.
	// +optional
	Gardener *gardencorev1beta1.Gardener `json:"gardener,omitempty"`
	// Conditions describe the health of the Garden.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// LastOperation is the last operation.
	// +optional
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// ObservedGeneration is the generation that the operator has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Credentials is the state of the credentials of the garden.
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`
	// AdvertisedAddresses are the addresses under which the garden can be reached.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AdvertisedAddresses []gardencorev1beta1.ShootAdvertisedAddress `json:"advertisedAddresses,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// Credentials is the state of the credentials of a garden.
type Credentials struct {
	// Rotation is the state of their rotation.
	// +optional
	Rotation *CredentialsRotation `json:"rotation,omitempty"`
	// EncryptionAtRest defines what is encrypted in etcd, and how.
	// +optional
	EncryptionAtRest *gardencorev1beta1.EncryptionAtRest `json:"encryptionAtRest,omitempty"`
}

// CredentialsRotation is the state of the rotation of a garden's credentials.
type CredentialsRotation struct {
	// CertificateAuthorities is the state of the rotation of certificate authorities.
	// +optional
	CertificateAuthorities *gardencorev1beta1.CARotation `json:"certificateAuthorities,omitempty"`
	// ServiceAccountKey is the state of the rotation of the key for tokens of service accounts.
	// +optional
	ServiceAccountKey *gardencorev1beta1.ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
	// ETCDEncryptionKey is the state of the rotation of the encryption key of etcd.
	// +optional
	ETCDEncryptionKey *gardencorev1beta1.ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty"`
	// Observability is the state of the rotation of observability passwords.
	// +optional
	Observability *gardencorev1beta1.ObservabilityRotation `json:"observability,omitempty"`
	// WorkloadIdentityKey is the state of the rotation of the key for tokens of WorkloadIdentities.
	// +optional
	WorkloadIdentityKey *WorkloadIdentityKeyRotation `json:"workloadIdentityKey,omitempty"`
}

// WorkloadIdentityKeyRotation is the state of the rotation of the key for tokens of WorkloadIdentities.
type WorkloadIdentityKeyRotation struct {
	// Phase is the step that the rotation has reached.
	Phase gardencorev1beta1.CredentialsRotationPhase `json:"phase"`
	// LastCompletionTime is the time at which a rotation was completed last.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// LastInitiationTime is the time at which a rotation was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// LastInitiationFinishedTime is the time at which the preparation ended last.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// LastCompletionTriggeredTime is the time of the last request for a completion.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
}
