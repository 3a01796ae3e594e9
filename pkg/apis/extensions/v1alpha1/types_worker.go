package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Worker asks an extension for the machines of a Shoot.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="The region"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Worker struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec WorkerSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status WorkerStatus `json:"status,omitempty"`
}

// WorkerList is a list of Worker objects.
// +kubebuilder:object:root=true
type WorkerList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Worker `json:"items"`
}

// WorkerSpec is the desired state of a Worker.
type WorkerSpec struct {
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
	// SSHPublicKey are the public key for the nodes.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`
	// Pools are the worker pools.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Pools []WorkerPool `json:"pools" patchStrategy:"merge" patchMergeKey:"name"`
}

// WorkerPool is a pool of machines that are alike.
type WorkerPool struct {
	// MachineType is the machine type.
	// +kubebuilder:validation:MinLength=1
	MachineType string `json:"machineType"`
	// Maximum is the number of machines that the pool may have.
	Maximum int32 `json:"maximum"`
	// MaxSurge is the number or percentage of machines above the wanted number during an update.
	MaxSurge intstr.IntOrString `json:"maxSurge"`
	// MaxUnavailable is the number or percentage of machines that may be missing during an update.
	MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`
	// Annotations are the annotations of the nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels are the labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Taints are the taints of the nodes.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// MachineImage is the machine image.
	// +optional
	MachineImage MachineImage `json:"machineImage,omitempty"`
	// Minimum is the number of machines that the pool has at least.
	Minimum int32 `json:"minimum"`
	// Name is the name of the pool.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// NodeAgentSecretName is the name of the Secret that configures the nodes. When it changes, the pool is rolled out.
	// +optional
	NodeAgentSecretName *string `json:"nodeAgentSecretName,omitempty"`
	// ProviderConfig is the configuration of the pool, in the format of the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// UserDataSecretRef refers to the user data of new machines.
	UserDataSecretRef corev1.SecretKeySelector `json:"userDataSecretRef"`
	// Volume is the root disk of the machines.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
	// DataVolumes further disks of the machines.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	DataVolumes []DataVolume `json:"dataVolumes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// KubeletDataVolumeName is the name of the data volume on which kubelet keeps its data.
	// +optional
	KubeletDataVolumeName *string `json:"kubeletDataVolumeName,omitempty"`
	// Zones are the zones over which the machines are spread.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
	// MachineControllerManagerSettings holds the settings for the management of the machines.
	// +optional
	MachineControllerManagerSettings *gardencorev1beta1.MachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
	// KubernetesVersion is the version of kubelet.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// KubeletConfig holds the settings of kubelet.
	// +optional
	KubeletConfig *gardencorev1beta1.KubeletConfig `json:"kubeletConfig,omitempty"`
	// NodeTemplate is what a node of the pool offers, for pools without machines.
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`
	// Architecture is the architecture of the CPUs.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture *string `json:"architecture,omitempty"`
	// ClusterAutoscaler holds the settings of cluster-autoscaler for the pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty"`
	// Priority is the priority of the pool for the expander priority.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// UpdateStrategy is how the machines are updated.
	// +optional
	UpdateStrategy *gardencorev1beta1.MachineUpdateStrategy `json:"updateStrategy,omitempty"`
}

// ClusterAutoscalerOptions holds the settings of cluster-autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// ScaleDownUtilizationThreshold is the share of a node's capacity below which it is unneeded, as a decimal number.
	// +optional
	ScaleDownUtilizationThreshold *string `json:"scaleDownUtilizationThreshold,omitempty"`
	// ScaleDownGpuUtilizationThreshold is the share of a node's GPUs below which it is unneeded, as a decimal number.
	// +optional
	ScaleDownGpuUtilizationThreshold *string `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	// ScaleDownUnneededTime is the time for which a node must have been unneeded.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// ScaleDownUnreadyTime is the time for which an unneeded node must not have been ready.
	// +optional
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// MaxNodeProvisionTime is the time in which a new node must become ready.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
}

// NodeTemplate is what a node of a pool offers.
type NodeTemplate struct {
	// Capacity are the resources of the machine.
	Capacity corev1.ResourceList `json:"capacity"`
	// VirtualCapacity further resources, whose change does not replace machines.
	// +optional
	VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`
}

// MachineImage is a machine image.
type MachineImage struct {
	// Name is the name of the image.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Version is its version.
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
}

// Volume is the root disk of a machine.
type Volume struct {
	// Name is the name of the disk.
	// +optional
	Name *string `json:"name,omitempty"`
	// Type is the volume type.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size is the size of the disk, as a number of Gi.
	Size string `json:"size"`
	// Encrypted defines whether the disk is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// DataVolume is a further disk of a machine.
type DataVolume struct {
	// Name is the name of the disk.
	Name string `json:"name"`
	// Type is the volume type.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size is the size of the disk, as a number of Gi.
	Size string `json:"size"`
	// Encrypted defines whether the disk is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// WorkerStatus is the observed state of a Worker.
type WorkerStatus struct {
	DefaultStatus `json:",inline"`
	// MachineDeployments are the sets of machines behind the pools.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	MachineDeployments []MachineDeployment `json:"machineDeployments,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// MachineDeploymentsLastUpdateTime is the time at which the list of sets was updated last.
	// +optional
	MachineDeploymentsLastUpdateTime *metav1.Time `json:"machineDeploymentsLastUpdateTime,omitempty"`
	// InPlaceUpdates is the state of in-place updates.
	// +optional
	InPlaceUpdates *WorkerInPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
}

// MachineDeployment is a set of machines behind a pool.
type MachineDeployment struct {
	// Name is the name of the set.
	Name string `json:"name"`
	// Minimum is the number of machines that it has at least.
	Minimum int32 `json:"minimum"`
	// Maximum is the number of machines that it may have.
	Maximum int32 `json:"maximum"`
	// Priority is its priority for the expander priority.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// AutoPreserveFailedMachineMax is the number of failed machines that are preserved automatically.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// WorkerInPlaceUpdatesStatus is the state of in-place updates.
type WorkerInPlaceUpdatesStatus struct {
	// WorkerPoolToHashMap are the hashes of the pools' configurations, by the names of the pools.
	// +optional
	WorkerPoolToHashMap map[string]string `json:"workerPoolToHashMap,omitempty"`
}
