package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShootTemplate is a Shoot without a name.
type ShootTemplate struct {
	// Metadata is the labels and annotations of the Shoot.
	// +optional
	Metadata metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state of the Shoot.
	// +optional
	Spec ShootSpec `json:"spec,omitempty"`
}
