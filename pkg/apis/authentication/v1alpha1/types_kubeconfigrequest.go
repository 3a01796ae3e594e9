package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdminKubeconfigRequest requests a kubeconfig for administrators of a Shoot. It is the body of the subresource
// adminkubeconfig.
// +kubebuilder:object:root=true
type AdminKubeconfigRequest struct {
	metav1.TypeMeta `json:",inline"`
	// ObjectMeta is the metadata of the request.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the request.
	Spec KubeconfigRequestSpec `json:"spec"`
	// Status is the answer.
	// +optional
	Status KubeconfigRequestStatus `json:"status,omitempty"`
}

// ViewerKubeconfigRequest requests a kubeconfig for viewers of a Shoot. It is the body of the subresource
// viewerkubeconfig.
// +kubebuilder:object:root=true
type ViewerKubeconfigRequest struct {
	metav1.TypeMeta `json:",inline"`
	// ObjectMeta is the metadata of the request.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the request.
	Spec KubeconfigRequestSpec `json:"spec"`
	// Status is the answer.
	// +optional
	Status KubeconfigRequestStatus `json:"status,omitempty"`
}

// KubeconfigRequestSpec describes the requested kubeconfig.
type KubeconfigRequestSpec struct {
	// ExpirationSeconds is the requested validity of the kubeconfig in seconds. Default: 3600.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// KubeconfigRequestStatus is the answer to a request for a kubeconfig.
type KubeconfigRequestStatus struct {
	// Kubeconfig are the kubeconfig.
	Kubeconfig []byte `json:"kubeconfig"`
	// ExpirationTimestamp is the time until which it is valid.
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp"`
}
