package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NamespacedCloudProfile changes and extends a CloudProfile for one project.
// +kubebuilder:object:root=true
type NamespacedCloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec NamespacedCloudProfileSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status NamespacedCloudProfileStatus `json:"status,omitempty"`
}

// NamespacedCloudProfileList is a list of NamespacedCloudProfile objects.
// +kubebuilder:object:root=true
type NamespacedCloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []NamespacedCloudProfile `json:"items"`
}

// NamespacedCloudProfileSpec is the desired state of a NamespacedCloudProfile.
type NamespacedCloudProfileSpec struct {
	// CABundle is the certificates, in PEM format, that all nodes trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Kubernetes is the versions of Kubernetes whose expiration differs from the parent's.
	// +optional
	Kubernetes *KubernetesSettings `json:"kubernetes,omitempty"`
	// MachineImages are the machine images that are added or changed.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	MachineImages []MachineImage `json:"machineImages,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// MachineTypes are the machine types that are added.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	MachineTypes []MachineType `json:"machineTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// VolumeTypes are the volume types that are added.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Parent refers to the CloudProfile. It is immutable.
	Parent CloudProfileReference `json:"parent"`
	// ProviderConfig is the configuration of the infrastructure, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Limits is what a Shoot must not exceed, instead of the parent's limits.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// NamespacedCloudProfileStatus is the observed state of a NamespacedCloudProfile.
type NamespacedCloudProfileStatus struct {
	// CloudProfileSpec is the specification of the parent with the changes of this object.
	// +optional
	CloudProfileSpec CloudProfileSpec `json:"cloudProfileSpec,omitempty"`
	// ObservedGeneration is the generation that the controller has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
