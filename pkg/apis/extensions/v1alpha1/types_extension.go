package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Extension requests an extension that no other kind covers.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=ext
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Extension struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec ExtensionSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status ExtensionStatus `json:"status,omitempty"`
}

// ExtensionList is a list of Extension objects.
// +kubebuilder:object:root=true
type ExtensionList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Extension `json:"items"`
}

// ExtensionSpec is the desired state of an Extension.
type ExtensionSpec struct {
	DefaultSpec `json:",inline"`
}

// ExtensionStatus is the observed state of an Extension.
type ExtensionStatus struct {
	DefaultStatus `json:",inline"`
}
