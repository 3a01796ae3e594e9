package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SecretBinding binds a Secret with infrastructure credentials to a project. Deprecated: use CredentialsBinding.
// +kubebuilder:object:root=true
type SecretBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// SecretRef refers to the Secret. Without a namespace it is in that of the binding. It is immutable.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Quotas refer to the Quotas that apply. It is immutable.
	// +listType=atomic
	// +optional
	Quotas []corev1.ObjectReference `json:"quotas,omitempty"`
	// Provider is the infrastructure that the credentials are for. It is immutable once set.
	// +optional
	Provider *SecretBindingProvider `json:"provider,omitempty"`
}

// SecretBindingList is a list of SecretBinding objects.
// +kubebuilder:object:root=true
type SecretBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []SecretBinding `json:"items"`
}

// SecretBindingProvider is the infrastructure that credentials are for.
type SecretBindingProvider struct {
	// Type is its type, or several of them separated by commas.
	Type string `json:"type"`
}
