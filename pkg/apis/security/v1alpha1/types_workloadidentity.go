package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkloadIdentity is an identity for which tokens are issued that an external system trusts.
// +kubebuilder:object:root=true
type WorkloadIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec WorkloadIdentitySpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status WorkloadIdentityStatus `json:"status,omitempty"`
}

// WorkloadIdentityList is a list of WorkloadIdentity objects.
// +kubebuilder:object:root=true
type WorkloadIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []WorkloadIdentity `json:"items"`
}

// WorkloadIdentitySpec is the desired state of a WorkloadIdentity.
type WorkloadIdentitySpec struct {
	// Audiences are the audiences of the tokens.
	// +listType=atomic
	Audiences []string `json:"audiences"`
	// TargetSystem is the system that trusts the tokens.
	TargetSystem TargetSystem `json:"targetSystem"`
}

// TargetSystem is a system that trusts tokens.
type TargetSystem struct {
	// Type is its type. It is immutable.
	Type string `json:"type"`
	// ProviderConfig is its configuration, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkloadIdentityStatus is the observed state of a WorkloadIdentity.
type WorkloadIdentityStatus struct {
	// Sub is the subject of the tokens. It is immutable.
	Sub string `json:"sub"`
}
