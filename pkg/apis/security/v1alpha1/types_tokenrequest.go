package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TokenRequest requests a token of a WorkloadIdentity. It is the body of the subresource token.
// +kubebuilder:object:root=true
type TokenRequest struct {
	metav1.TypeMeta `json:",inline"`
	// ObjectMeta is the metadata of the request.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the request.
	Spec TokenRequestSpec `json:"spec"`
	// Status is the answer.
	// +optional
	Status TokenRequestStatus `json:"status,omitempty"`
}

// TokenRequestSpec describes the requested token.
type TokenRequestSpec struct {
	// ContextObject is the object for which the token is used.
	// +optional
	ContextObject *ContextObject `json:"contextObject,omitempty"`
	// ExpirationSeconds is the requested validity of the token in seconds. Default: 3600.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// ContextObject identifies an object for which a token is used.
type ContextObject struct {
	// Kind is its kind: Shoot, Seed, BackupBucket or BackupEntry.
	Kind string `json:"kind"`
	// APIVersion is its API version.
	APIVersion string `json:"apiVersion"`
	// Name is its name.
	Name string `json:"name"`
	// Namespace is its namespace.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// UID is its unique identifier.
	UID types.UID `json:"uid"`
}

// TokenRequestStatus is the answer to a TokenRequest.
type TokenRequestStatus struct {
	// Token is the token.
	Token string `json:"token"`
	// ExpirationTimestamp is the time until which it is valid.
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp"`
}
