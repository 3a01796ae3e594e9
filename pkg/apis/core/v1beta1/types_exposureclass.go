package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExposureClass is a way in which the API servers of Shoots are exposed.
// +kubebuilder:object:root=true
type ExposureClass struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Handler is the name of the handler in the Seeds. It is immutable.
	Handler string `json:"handler"`
	// Scheduling restricts the Seeds. It is immutable.
	// +optional
	Scheduling *ExposureClassScheduling `json:"scheduling,omitempty"`
}

// ExposureClassList is a list of ExposureClass objects.
// +kubebuilder:object:root=true
type ExposureClassList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ExposureClass `json:"items"`
}

// ExposureClassScheduling restricts the Seeds for Shoots of an ExposureClass.
type ExposureClassScheduling struct {
	// SeedSelector selects the Seeds.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty"`
	// Tolerations name the taints of Seeds that are accepted.
	// +listType=atomic
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
}
