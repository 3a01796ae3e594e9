package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialsBinding binds infrastructure credentials to a project.
// +kubebuilder:object:root=true
type CredentialsBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Provider is the infrastructure that the credentials are for. It is immutable.
	Provider CredentialsBindingProvider `json:"provider"`
	// CredentialsRef refers to the credentials: a Secret, an InternalSecret or a WorkloadIdentity. It is immutable.
	CredentialsRef corev1.ObjectReference `json:"credentialsRef"`
	// Quotas refer to the Quotas that apply. It is immutable.
	// +listType=atomic
	// +optional
	Quotas []corev1.ObjectReference `json:"quotas,omitempty"`
}

// CredentialsBindingList is a list of CredentialsBinding objects.
// +kubebuilder:object:root=true
type CredentialsBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []CredentialsBinding `json:"items"`
}

// CredentialsBindingProvider is the infrastructure that credentials are for.
type CredentialsBindingProvider struct {
	// Type is its type.
	Type string `json:"type"`
}
