package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InternalSecret is a Secret that the members of a project cannot read.
// +kubebuilder:object:root=true
type InternalSecret struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Immutable defines whether the data cannot be changed any more.
	// +optional
	Immutable *bool `json:"immutable,omitempty"`
	// Data are the data. All values together may have 1 MiB.
	// +optional
	Data map[string][]byte `json:"data,omitempty"`
	// StringData are the data as text, which is merged into data and never read back.
	// +optional
	StringData map[string]string `json:"stringData,omitempty"`
	// Type is the type, which defines what keys the data must have. It is immutable.
	// +optional
	Type corev1.SecretType `json:"type,omitempty"`
}

// InternalSecretList is a list of InternalSecret objects.
// +kubebuilder:object:root=true
type InternalSecretList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []InternalSecret `json:"items"`
}
