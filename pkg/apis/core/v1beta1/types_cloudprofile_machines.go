package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineType is a machine type on offer.
type MachineType struct {
	// CPU is the number of its CPUs.
	CPU resource.Quantity `json:"cpu"`
	// GPU is the number of its GPUs.
	GPU resource.Quantity `json:"gpu"`
	// Memory is its memory.
	Memory resource.Quantity `json:"memory"`
	// Name is the name of the machine type, unique.
	Name string `json:"name"`
	// Storage is the disk that it comes with.
	// +optional
	Storage *MachineTypeStorage `json:"storage,omitempty"`
	// Usable defines whether new pools may use it. Default: true.
	// +optional
	Usable *bool `json:"usable,omitempty"`
	// Architecture is the architecture of its CPUs. Default: amd64.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
	// Capabilities is its capabilities.
	// +optional
	Capabilities Capabilities `json:"capabilities,omitempty"`
	// MachineControllerManager holds the settings for the management of its machines.
	// +optional
	MachineControllerManager *MachineTypeControllerManagerSettings `json:"machineControllerManager,omitempty"`
}

// MachineTypeControllerManagerSettings holds the settings for the management of machines of a type.
type MachineTypeControllerManagerSettings struct {
	// MachineCreationTimeout is the time in which a new machine must join the cluster.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
}

// MachineTypeStorage is the disk that a machine type comes with. It has a size or a minimum size.
type MachineTypeStorage struct {
	// Class is the class of the disk.
	Class string `json:"class"`
	// Size is the size of the disk.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// Type is the volume type of the disk.
	Type string `json:"type"`
	// MinSize is the size that the disk must have at least.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
}

// Region is a region on offer.
type Region struct {
	// Name is the name of the region, unique.
	Name string `json:"name"`
	// Zones are its zones.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Zones []AvailabilityZone `json:"zones,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Labels are the labels of the region.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// AccessRestrictions are the restrictions of access that it offers.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// AvailabilityZone is a zone of a region.
type AvailabilityZone struct {
	// Name is the name of the zone.
	Name string `json:"name"`
	// UnavailableMachineTypes are the machine types that the zone lacks.
	// +listType=atomic
	// +optional
	UnavailableMachineTypes []string `json:"unavailableMachineTypes,omitempty"`
	// UnavailableVolumeTypes are the volume types that the zone lacks.
	// +listType=atomic
	// +optional
	UnavailableVolumeTypes []string `json:"unavailableVolumeTypes,omitempty"`
}

// VolumeType is a volume type on offer.
type VolumeType struct {
	// Class is the class of the volumes, such as standard or premium.
	Class string `json:"class"`
	// Name is the name of the volume type, unique.
	Name string `json:"name"`
	// Usable defines whether new pools may use it. Default: true.
	// +optional
	Usable *bool `json:"usable,omitempty"`
	// MinSize is the size that a volume must have at least.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
}

// CloudProfileBastion defines which machine a bastion gets.
type CloudProfileBastion struct {
	// MachineImage is the image of the machine.
	// +optional
	MachineImage *BastionMachineImage `json:"machineImage,omitempty"`
	// MachineType is the type of the machine.
	// +optional
	MachineType *BastionMachineType `json:"machineType,omitempty"`
}

// BastionMachineImage is the image of a bastion's machine.
type BastionMachineImage struct {
	// Name is the name of the image.
	Name string `json:"name"`
	// Version is its version.
	// +optional
	Version *string `json:"version,omitempty"`
}

// BastionMachineType is the type of a bastion's machine.
type BastionMachineType struct {
	// Name is the name of the machine type.
	Name string `json:"name"`
}

// Limits are what a Shoot must not exceed.
type Limits struct {
	// MaxNodesTotal is the number of its nodes.
	// +optional
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty"`
}

// CloudProfileControlPlane holds the settings of control planes.
type CloudProfileControlPlane struct {
	// AllowZonePinning defines whether Shoots may name the zones of their control planes.
	// +optional
	AllowZonePinning bool `json:"allowZonePinning,omitempty"`
}
