package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SeedTemplate is a Seed without a name.
type SeedTemplate struct {
	// Metadata is the labels and annotations of the Seed.
	// +optional
	Metadata metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state of the Seed.
	// +optional
	Spec SeedSpec `json:"spec,omitempty"`
}
