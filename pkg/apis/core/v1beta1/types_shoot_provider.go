package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Provider is the infrastructure of a cluster and its worker pools.
type Provider struct {
	// Type is the type of the infrastructure, which the extension for it knows. It is immutable.
	Type string `json:"type"`
	// ControlPlaneConfig is the configuration of the control plane on the infrastructure, in the format of the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ControlPlaneConfig *runtime.RawExtension `json:"controlPlaneConfig,omitempty"`
	// InfrastructureConfig is the configuration of the infrastructure, in the format of the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	InfrastructureConfig *runtime.RawExtension `json:"infrastructureConfig,omitempty"`
	// Workers are the worker pools. A Shoot without any has a control plane only.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Workers []Worker `json:"workers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// WorkersSettings holds the settings of all worker pools.
	// +optional
	WorkersSettings *WorkersSettings `json:"workersSettings,omitempty"`
}

// WorkersSettings holds the settings of all worker pools.
type WorkersSettings struct {
	// SSHAccess defines whether nodes accept SSH connections.
	// +optional
	SSHAccess *SSHAccess `json:"sshAccess,omitempty"`
}

// SSHAccess defines whether nodes accept SSH connections.
type SSHAccess struct {
	// Enabled defines whether they do. Default: true.
	Enabled bool `json:"enabled"`
}

// Worker is a pool of nodes that are alike.
type Worker struct {
	// Annotations are the annotations of its nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// CABundle is the certificates, in PEM format, that its nodes trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// CRI is the container runtime. Default: containerd.
	// +optional
	CRI *CRI `json:"cri,omitempty"`
	// Kubernetes is the version of kubelet and its settings, where they differ from those of the cluster.
	// +optional
	Kubernetes *WorkerKubernetes `json:"kubernetes,omitempty"`
	// Labels are the labels of its nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Name is the name of the pool, unique, of at most 15 characters.
	Name string `json:"name"`
	// Machine is the machine type and image.
	Machine Machine `json:"machine"`
	// Maximum is the number of nodes that the pool may have.
	Maximum int32 `json:"maximum"`
	// Minimum is the number of nodes that the pool has at least.
	Minimum int32 `json:"minimum"`
	// MaxSurge is the number or percentage of nodes above the wanted number during an update. Default: 1.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// MaxUnavailable is the number or percentage of nodes that may be missing during an update. Default: 0.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// ProviderConfig is the configuration of the pool, in the format of the infrastructure's extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Taints are the taints of its nodes.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Volume is the root disk of its nodes.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
	// DataVolumes further disks of its nodes.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	DataVolumes []DataVolume `json:"dataVolumes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// KubeletDataVolumeName is the name of the data volume on which kubelet keeps its data.
	// +optional
	KubeletDataVolumeName *string `json:"kubeletDataVolumeName,omitempty"`
	// Zones are the zones over which the nodes are spread.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
	// SystemComponents defines whether system components may run on its nodes. Default: they may.
	// +optional
	SystemComponents *WorkerSystemComponents `json:"systemComponents,omitempty"`
	// MachineControllerManagerSettings holds the settings for the management of its machines.
	// +optional
	MachineControllerManagerSettings *MachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
	// Sysctls kernel settings of its nodes.
	// +optional
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// ClusterAutoscaler holds the settings of cluster-autoscaler for the pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty"`
	// Priority is the priority of the pool for the expander priority, at least -1.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// UpdateStrategy is how its nodes are updated. Default: AutoRollingUpdate.
	// +optional
	UpdateStrategy *MachineUpdateStrategy `json:"updateStrategy,omitempty"`
	// ControlPlane marks the pool as the one that runs the control plane of a self-hosted Shoot.
	// +optional
	ControlPlane *WorkerControlPlane `json:"controlPlane,omitempty"`
}

// MachineUpdateStrategy is how the nodes of a pool are updated.
// +enum
// +kubebuilder:validation:Enum=AutoRollingUpdate;AutoInPlaceUpdate;ManualInPlaceUpdate
type MachineUpdateStrategy string

// The values of MachineUpdateStrategy.
const (
	// AutoRollingUpdate replaces nodes one after the other.
	AutoRollingUpdate MachineUpdateStrategy = "AutoRollingUpdate"
	// AutoInPlaceUpdate updates nodes without replacing them.
	AutoInPlaceUpdate MachineUpdateStrategy = "AutoInPlaceUpdate"
	// ManualInPlaceUpdate updates nodes without replacing them when the user requests it.
	ManualInPlaceUpdate MachineUpdateStrategy = "ManualInPlaceUpdate"
)

// WorkerSystemComponents defines whether system components may run on the nodes of a pool.
type WorkerSystemComponents struct {
	// Allow defines whether they may.
	Allow bool `json:"allow"`
}

// MachineControllerManagerSettings holds the settings for the management of machines.
type MachineControllerManagerSettings struct {
	// MachineDrainTimeout is the time in which a machine must be drained.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"machineDrainTimeout,omitempty"`
	// MachineHealthTimeout is the time after which an unhealthy machine is replaced.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"machineHealthTimeout,omitempty"`
	// MachineCreationTimeout is the time in which a new machine must join the cluster.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
	// MaxEvictRetries is the number of attempts to evict a pod.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`
	// NodeConditions are the conditions of a node that make its machine unhealthy.
	// +listType=atomic
	// +optional
	NodeConditions []string `json:"nodeConditions,omitempty"`
	// InPlaceUpdateTimeout is the time for an in-place update. Only for in-place strategies.
	// +optional
	InPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`
	// DisableHealthTimeout defines whether an unhealthy machine is never replaced. Default for in-place strategies: true.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`
	// MachinePreserveTimeout is the time for which a machine is preserved.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`
	// AutoPreserveFailedMachineMax is the number of failed machines that are preserved automatically.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// ClusterAutoscalerOptions holds the settings of cluster-autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// ScaleDownUtilizationThreshold is the share of a node's capacity below which it is unneeded.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// ScaleDownGpuUtilizationThreshold is the share of a node's GPUs below which it is unneeded.
	// +optional
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty"`
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

// WorkerKubernetes is the version of kubelet and its settings.
type WorkerKubernetes struct {
	// Kubelet holds the settings of kubelet.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty"`
	// Version is the version of kubelet, at most three minor versions behind that of the cluster.
	// +optional
	Version *string `json:"version,omitempty"`
}

// Machine is a machine type and image.
type Machine struct {
	// Type is the name of the machine type, which the CloudProfile has to offer.
	Type string `json:"type"`
	// Image is the machine image. Default: the latest of the CloudProfile that fits.
	// +optional
	Image *ShootMachineImage `json:"image,omitempty"`
	// Architecture is the architecture of the CPU: amd64 or arm64. Default: that of the machine type, else amd64.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
}

// ShootMachineImage is a machine image.
type ShootMachineImage struct {
	// Name is the name of the image in the CloudProfile.
	Name string `json:"name"`
	// ProviderConfig is the configuration of the operating system, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Version is the version of the image. A version that is not complete is completed from the CloudProfile.
	// +optional
	Version *string `json:"version,omitempty"`
}

// Volume is the root disk of a node.
type Volume struct {
	// Name is the name of the disk, of at most 15 characters.
	// +optional
	Name *string `json:"name,omitempty"`
	// Type is the volume type, which the CloudProfile has to offer.
	// +optional
	Type *string `json:"type,omitempty"`
	// VolumeSize is the size of the disk, as a number of Gi.
	VolumeSize string `json:"size"`
	// Encrypted defines whether the disk is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// DataVolume is a further disk of a node.
type DataVolume struct {
	// Name is the name of the disk, of at most 15 characters.
	Name string `json:"name"`
	// Type is the volume type, which the CloudProfile has to offer.
	// +optional
	Type *string `json:"type,omitempty"`
	// VolumeSize is the size of the disk, as a number of Gi.
	VolumeSize string `json:"size"`
	// Encrypted defines whether the disk is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// CRI is a container runtime interface and the runtimes behind it.
type CRI struct {
	// Name is the name of the interface. Default: containerd.
	Name CRIName `json:"name"`
	// ContainerRuntimes further runtimes.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	ContainerRuntimes []ContainerRuntime `json:"containerRuntimes,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// CRIName is the name of a container runtime interface.
// +enum
// +kubebuilder:validation:Enum=containerd
type CRIName string

// The values of CRIName.
const (
	// CRINameContainerD is containerd.
	CRINameContainerD CRIName = "containerd"
)

// ContainerRuntime is a runtime of containers.
type ContainerRuntime struct {
	// Type is the type of the runtime, which an extension knows.
	Type string `json:"type"`
	// ProviderConfig is the configuration of the runtime, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkerControlPlane holds the settings of a pool that runs the control plane of a self-hosted Shoot.
type WorkerControlPlane struct {
	// Backup configures where backups of etcd are stored.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
	// Exposure defines how the API server is exposed.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// Exposure defines how the API server of a self-hosted Shoot is exposed: by an extension or by DNS records.
type Exposure struct {
	// Extension exposes it by an extension.
	// +optional
	Extension *ExtensionExposure `json:"extension,omitempty"`
	// DNS exposes it by DNS records with the addresses of the nodes.
	// +optional
	DNS *DNSExposure `json:"dns,omitempty"`
}

// ExtensionExposure exposes an API server by an extension.
type ExtensionExposure struct {
	// Type is the type of the extension. Default: the type of the infrastructure.
	// +optional
	Type *string `json:"type,omitempty"`
	// ProviderConfig is the configuration of the extension, in a format of its own.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// DNSExposure exposes an API server by DNS records with the addresses of the nodes.
type DNSExposure struct {
}

// Backup configures where backups of etcd are stored.
type Backup struct {
	// Provider is the type of the infrastructure that keeps them. It is immutable.
	Provider string `json:"provider"`
	// ProviderConfig is the configuration of the bucket, in the format of the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Region is the region of the bucket. It is immutable.
	// +optional
	Region *string `json:"region,omitempty"`
	// CredentialsRef refers to the credentials for the bucket: a Secret, an InternalSecret or a WorkloadIdentity.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
}
