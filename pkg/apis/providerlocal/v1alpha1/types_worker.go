package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkerConfig is the provider configuration of a worker pool of a Shoot.
// +kubebuilder:object:root=true
type WorkerConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Resources are the requests and limits of the container that is the machine. A change replaces the machines.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// WorkerStatus is the provider status of a Worker.
// +kubebuilder:object:root=true
type WorkerStatus struct {
	metav1.TypeMeta `json:",inline"`
	// Simulated is set if the machines are nodes that KWOK simulates.
	// +optional
	Simulated bool `json:"simulated,omitempty"`
	// MachineImages are the machine images that the pools use, with their container images.
	// +optional
	MachineImages []WorkerMachineImage `json:"machineImages,omitempty"`
	// Machines are the machines that exist.
	// +optional
	Machines []MachineStatus `json:"machines,omitempty"`
}

// WorkerMachineImage is a machine image that is in use. It stays usable when the CloudProfile no longer has it.
type WorkerMachineImage struct {
	// Name is the name of the machine image.
	Name string `json:"name"`
	// Version is its version.
	Version string `json:"version"`
	// Image is the container image.
	Image string `json:"image"`
}

// MachineStatus is the state of a machine.
type MachineStatus struct {
	// Name is the name of the machine.
	Name string `json:"name"`
	// Pool is the name of the worker pool.
	Pool string `json:"pool"`
	// Phase is Pending, Running, Unhealthy, Draining or Terminating.
	Phase string `json:"phase"`
	// Address is the machine's IP address.
	// +optional
	Address string `json:"address,omitempty"`
	// ImageVersion is the version of its machine image.
	// +optional
	ImageVersion string `json:"imageVersion,omitempty"`
}

// WorkerState is the state of a Worker, from which another seed takes it over.
// +kubebuilder:object:root=true
type WorkerState struct {
	metav1.TypeMeta `json:",inline"`
	// Machines are the machines that exist.
	// +optional
	Machines []MachineState `json:"machines,omitempty"`
}

// MachineState is what identifies a machine.
type MachineState struct {
	// Name is the name of the machine.
	Name string `json:"name"`
	// Deployment is the name of the set of machines that it belongs to.
	Deployment string `json:"deployment"`
	// Class is a digest of what the machine was made from.
	Class string `json:"class"`
}
