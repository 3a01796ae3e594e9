package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Bastion is a host through which a user reaches the nodes of a Shoot by SSH.
// +kubebuilder:object:root=true
type Bastion struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec BastionSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status BastionStatus `json:"status,omitempty"`
}

// BastionList is a list of Bastion objects.
// +kubebuilder:object:root=true
type BastionList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Bastion `json:"items"`
}

// BastionSpec is the desired state of a Bastion.
type BastionSpec struct {
	// ShootRef refers to the Shoot. It is immutable.
	ShootRef corev1.LocalObjectReference `json:"shootRef"`
	// SeedName is the name of the Seed that hosts the Shoot. The API server sets it.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// ProviderType is the infrastructure of the Shoot. The API server sets it.
	// +optional
	ProviderType *string `json:"providerType,omitempty"`
	// SSHPublicKey is the public key of the user, in the format of authorized_keys. It is immutable.
	SSHPublicKey string `json:"sshPublicKey"`
	// Ingress are the addresses from which the host can be reached.
	// +listType=atomic
	Ingress []BastionIngressPolicy `json:"ingress"`
}

// BastionIngressPolicy is a range of addresses from which a host can be reached.
type BastionIngressPolicy struct {
	// IPBlock is the range.
	IPBlock networkingv1.IPBlock `json:"ipBlock"`
}

// BastionStatus is the observed state of a Bastion.
type BastionStatus struct {
	// Ingress is the address of the host.
	// +optional
	Ingress *corev1.LoadBalancerIngress `json:"ingress,omitempty"`
	// Conditions describe the state of the host.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// LastHeartbeatTimestamp is the time of the last request of the user for the host.
	// +optional
	LastHeartbeatTimestamp *metav1.Time `json:"lastHeartbeatTimestamp,omitempty"`
	// ExpirationTimestamp is the time at which the host is deleted.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// ObservedGeneration is the generation that the controller has seen last.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}
