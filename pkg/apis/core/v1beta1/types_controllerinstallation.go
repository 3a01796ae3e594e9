package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ControllerInstallation is the installation of an extension in a Seed or in a self-hosted Shoot.
// +kubebuilder:object:root=true
type ControllerInstallation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ControllerInstallationSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status ControllerInstallationStatus `json:"status,omitempty"`
}

// ControllerInstallationList is a list of ControllerInstallation objects.
// +kubebuilder:object:root=true
type ControllerInstallationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ControllerInstallation `json:"items"`
}

// ControllerInstallationSpec is the desired state of a ControllerInstallation.
type ControllerInstallationSpec struct {
	// RegistrationRef refers to the ControllerRegistration. It is immutable.
	RegistrationRef corev1.ObjectReference `json:"registrationRef"`
	// SeedRef refers to the Seed. It is immutable.
	// +optional
	SeedRef *corev1.ObjectReference `json:"seedRef,omitempty"`
	// DeploymentRef refers to the ControllerDeployment.
	// +optional
	DeploymentRef *corev1.ObjectReference `json:"deploymentRef,omitempty"`
	// ShootRef refers to the self-hosted Shoot, instead of a Seed. It is immutable.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty"`
	// ResourceRefs refer to the copies of Secrets and ConfigMaps that the deployment uses.
	// +listType=atomic
	// +optional
	ResourceRefs []corev1.ObjectReference `json:"resourceRefs,omitempty"`
}

// ControllerInstallationStatus is the observed state of a ControllerInstallation.
type ControllerInstallationStatus struct {
	// Conditions describe whether the installation is valid, installed, healthy, progressing and required.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// ProviderStatus is what the installation reports, in a format of its own.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}
