package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ControlPlane asks an extension for what an infrastructure adds to a control plane.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=cp
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type ControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec ControlPlaneSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status ControlPlaneStatus `json:"status,omitempty"`
}

// ControlPlaneList is a list of ControlPlane objects.
// +kubebuilder:object:root=true
type ControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ControlPlane `json:"items"`
}

// ControlPlaneSpec is the desired state of a ControlPlane.
type ControlPlaneSpec struct {
	DefaultSpec `json:",inline"`
	// InfrastructureProviderStatus is what the extension reported for the infrastructure.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus,omitempty"`
	// Region is the region. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Region string `json:"region"`
	// SecretRef refers to the Secret with the credentials.
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is required"
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// ControlPlaneStatus is the observed state of a ControlPlane.
type ControlPlaneStatus struct {
	DefaultStatus `json:",inline"`
}
