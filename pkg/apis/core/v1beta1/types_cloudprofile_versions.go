package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubernetesSettings are the versions of Kubernetes on offer.
type KubernetesSettings struct {
	// Versions are the versions.
	// +listType=map
	// +listMapKey=version
	// +patchMergeKey=version
	// +patchStrategy=merge
	// +optional
	Versions []ExpirableVersion `json:"versions,omitempty" patchStrategy:"merge" patchMergeKey:"version"`
}

// ExpirableVersion is a version that may be used for a time.
type ExpirableVersion struct {
	// Version is the version.
	Version string `json:"version"`
	// ExpirationDate is the time from which the version must not be used. Deprecated: use lifecycle.
	// +optional
	ExpirationDate *metav1.Time `json:"expirationDate,omitempty"`
	// Classification is the state of the version. Deprecated: use lifecycle.
	// +optional
	Classification *VersionClassification `json:"classification,omitempty"`
	// Lifecycle lists the classifications of the version and when each begins.
	// +listType=map
	// +listMapKey=classification
	// +patchMergeKey=classification
	// +patchStrategy=merge
	// +optional
	Lifecycle []LifecycleStage `json:"lifecycle,omitempty" patchStrategy:"merge" patchMergeKey:"classification"`
}

// LifecycleStage is a classification of a version and the time at which it begins.
type LifecycleStage struct {
	// Classification is the classification.
	Classification VersionClassification `json:"classification"`
	// StartTime is the time from which it applies. Only the first stage may lack it.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
}

// VersionClassification is a stage in the life of a version.
// +enum
// +kubebuilder:validation:Enum=unavailable;preview;supported;deprecated;expired
type VersionClassification string

// The values of VersionClassification.
const (
	// ClassificationUnavailable means that the version cannot be used yet.
	ClassificationUnavailable VersionClassification = "unavailable"
	// ClassificationPreview means that the version can be tried.
	ClassificationPreview VersionClassification = "preview"
	// ClassificationSupported means that the version is the one to use.
	ClassificationSupported VersionClassification = "supported"
	// ClassificationDeprecated means that the version is about to expire.
	ClassificationDeprecated VersionClassification = "deprecated"
	// ClassificationExpired means that the version cannot be used any more.
	ClassificationExpired VersionClassification = "expired"
)

// MachineImage is a machine image with its versions.
type MachineImage struct {
	// Name is the name of the image, unique.
	Name string `json:"name"`
	// Versions are its versions.
	// +listType=map
	// +listMapKey=version
	// +patchMergeKey=version
	// +patchStrategy=merge
	Versions []MachineImageVersion `json:"versions" patchStrategy:"merge" patchMergeKey:"version"`
	// UpdateStrategy is how far automatic updates go. Default: major.
	// +optional
	UpdateStrategy *MachineImageUpdateStrategy `json:"updateStrategy,omitempty"`
}

// MachineImageUpdateStrategy is how far automatic updates of a machine image go.
// +enum
// +kubebuilder:validation:Enum=patch;minor;major
type MachineImageUpdateStrategy string

// The values of MachineImageUpdateStrategy.
const (
	// UpdateStrategyPatch stays within the minor version.
	UpdateStrategyPatch MachineImageUpdateStrategy = "patch"
	// UpdateStrategyMinor stays within the major version.
	UpdateStrategyMinor MachineImageUpdateStrategy = "minor"
	// UpdateStrategyMajor goes to the latest version.
	UpdateStrategyMajor MachineImageUpdateStrategy = "major"
)

// MachineImageVersion is a version of a machine image.
type MachineImageVersion struct {
	ExpirableVersion `json:",inline"`
	// CRI are the container runtime interfaces of the image. Default: containerd.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	CRI []CRI `json:"cri,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Architectures are the architectures of CPUs that the image is for. Default: amd64.
	// +listType=atomic
	// +optional
	Architectures []string `json:"architectures,omitempty"`
	// KubeletVersionConstraint is the versions of kubelet that the image supports, as a constraint for semantic versions.
	// +optional
	KubeletVersionConstraint *string `json:"kubeletVersionConstraint,omitempty"`
	// InPlaceUpdates defines whether the image can be updated in place.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
	// CapabilityFlavors are the combinations of capabilities that the image supports.
	// +listType=atomic
	// +optional
	CapabilityFlavors []Capabilities `json:"capabilityFlavors,omitempty"`
}

// InPlaceUpdates defines whether a machine image can be updated in place.
type InPlaceUpdates struct {
	// Supported defines whether it can.
	Supported bool `json:"supported"`
	// MinVersionForUpdate is the least version from which it can.
	// +optional
	MinVersionForUpdate *string `json:"minVersionForUpdate,omitempty"`
}

// Capabilities are capabilities with the values that a machine type or image has of each.
type Capabilities map[string]CapabilityValues

// CapabilityValues are values of a capability.
// +listType=atomic
type CapabilityValues []string

// CapabilityDefinition defines a capability by which machine types and images are matched.
type CapabilityDefinition struct {
	// Name is the name of the capability.
	Name string `json:"name"`
	// Values is its possible values.
	Values CapabilityValues `json:"values"`
}
