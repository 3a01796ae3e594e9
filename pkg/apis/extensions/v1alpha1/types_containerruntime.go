package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRuntime asks an extension for a container runtime on the nodes of a pool.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=cr
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type ContainerRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec ContainerRuntimeSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status ContainerRuntimeStatus `json:"status,omitempty"`
}

// ContainerRuntimeList is a list of ContainerRuntime objects.
// +kubebuilder:object:root=true
type ContainerRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ContainerRuntime `json:"items"`
}

// ContainerRuntimeSpec is the desired state of a ContainerRuntime.
type ContainerRuntimeSpec struct {
	DefaultSpec `json:",inline"`
	// BinaryPath is the directory of the runtime's programs on the nodes.
	// +kubebuilder:validation:MinLength=1
	BinaryPath string `json:"binaryPath"`
	// WorkerPool is the worker pool.
	WorkerPool ContainerRuntimeWorkerPool `json:"workerPool"`
}

// ContainerRuntimeWorkerPool identifies a worker pool.
type ContainerRuntimeWorkerPool struct {
	// Name is the name of the pool. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Name string `json:"name"`
	// Selector selects the nodes of the pool.
	Selector metav1.LabelSelector `json:"selector"`
}

// ContainerRuntimeStatus is the observed state of a ContainerRuntime.
type ContainerRuntimeStatus struct {
	DefaultStatus `json:",inline"`
}
