package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CloudProfile describes what an infrastructure offers: versions, machine types, regions and more.
// +kubebuilder:object:root=true
type CloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec CloudProfileSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status CloudProfileStatus `json:"status,omitempty"`
}

// CloudProfileList is a list of CloudProfile objects.
// +kubebuilder:object:root=true
type CloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []CloudProfile `json:"items"`
}

// CloudProfileSpec is the desired state of a CloudProfile.
type CloudProfileSpec struct {
	// CABundle is the certificates, in PEM format, that all nodes trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Kubernetes is the versions of Kubernetes on offer.
	Kubernetes KubernetesSettings `json:"kubernetes"`
	// MachineImages are the machine images on offer.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	MachineImages []MachineImage `json:"machineImages" patchStrategy:"merge" patchMergeKey:"name"`
	// MachineTypes are the machine types on offer.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	MachineTypes []MachineType `json:"machineTypes" patchStrategy:"merge" patchMergeKey:"name"`
	// ProviderConfig is the configuration of the infrastructure, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Regions are the regions on offer.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Regions []Region `json:"regions" patchStrategy:"merge" patchMergeKey:"name"`
	// SeedSelector restricts the Seeds for Shoots of this profile.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty"`
	// Type is the type of the infrastructure.
	Type string `json:"type"`
	// VolumeTypes are the volume types on offer.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Bastion defines which machine a bastion gets.
	// +optional
	Bastion *CloudProfileBastion `json:"bastion,omitempty"`
	// Limits is what a Shoot must not exceed.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
	// MachineCapabilities are the capabilities by which machine types and images are matched.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	MachineCapabilities []CapabilityDefinition `json:"machineCapabilities,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// ControlPlane holds the settings of control planes.
	// +optional
	ControlPlane *CloudProfileControlPlane `json:"controlPlane,omitempty"`
}

// CloudProfileStatus is the observed state of a CloudProfile.
type CloudProfileStatus struct {
	// Kubernetes is the versions of Kubernetes with their classification now.
	// +optional
	Kubernetes *KubernetesStatus `json:"kubernetes,omitempty"`
	// MachineImages are the machine images with their classification now.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	MachineImages []MachineImageStatus `json:"machineImages,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// KubernetesStatus are the versions of Kubernetes with their classification now.
type KubernetesStatus struct {
	// Versions are the versions.
	// +listType=map
	// +listMapKey=version
	// +patchMergeKey=version
	// +patchStrategy=merge
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty" patchStrategy:"merge" patchMergeKey:"version"`
}

// MachineImageStatus is a machine image with the classification of its versions now.
type MachineImageStatus struct {
	// Name is the name of the image.
	Name string `json:"name"`
	// Versions are its versions.
	// +listType=map
	// +listMapKey=version
	// +patchMergeKey=version
	// +patchStrategy=merge
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty" patchStrategy:"merge" patchMergeKey:"version"`
}

// ExpirableVersionStatus is a version with its classification now.
type ExpirableVersionStatus struct {
	// Version is the version.
	Version string `json:"version"`
	// Classification is its classification now.
	Classification VersionClassification `json:"classification"`
}
