package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubeletConfig holds the settings of kubelet.
type KubeletConfig struct {
	KubernetesConfig `json:",inline"`
	// CPUCFSQuota defines whether CPU limits of containers are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
	// CPUManagerPolicy none or static. In effect without a value: none.
	// +optional
	CPUManagerPolicy *string `json:"cpuManagerPolicy,omitempty"`
	// EvictionHard is the thresholds at which pods are evicted at once.
	// +optional
	EvictionHard *KubeletConfigEviction `json:"evictionHard,omitempty"`
	// EvictionMaxPodGracePeriod is the time that pods get to end at a soft eviction, in seconds. In effect without a value:
	// 90.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// EvictionMinimumReclaim is what an eviction frees at least.
	// +optional
	EvictionMinimumReclaim *KubeletConfigEvictionMinimumReclaim `json:"evictionMinimumReclaim,omitempty"`
	// EvictionPressureTransitionPeriod is the time for which a node stays under pressure after the cause is gone. In effect
	// without a value: 4m.
	// +optional
	EvictionPressureTransitionPeriod *metav1.Duration `json:"evictionPressureTransitionPeriod,omitempty"`
	// EvictionSoft is the thresholds at which pods are evicted after a grace period.
	// +optional
	EvictionSoft *KubeletConfigEviction `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod is the grace periods of soft evictions.
	// +optional
	EvictionSoftGracePeriod *KubeletConfigEvictionSoftGracePeriod `json:"evictionSoftGracePeriod,omitempty"`
	// MaxPods is the number of pods on a node. In effect without a value: 110.
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodPidsLimit is the number of processes in a pod, at least 100.
	// +optional
	PodPidsLimit *int64 `json:"podPidsLimit,omitempty"`
	// FailSwapOn defines whether kubelet refuses to start on a node with swap. Default: true.
	// +optional
	FailSwapOn *bool `json:"failSwapOn,omitempty"`
	// KubeReserved is what is reserved for the components of Kubernetes on a node.
	// +optional
	KubeReserved *KubeletConfigReserved `json:"kubeReserved,omitempty"`
	// ImageGCHighThresholdPercent is the use of the disk at which images are deleted, in percent. Default: 50.
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the use of the disk down to which images are deleted, in percent. Default: 40.
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// SerializeImagePulls defines whether images are pulled one after the other. Default: true, unless maxParallelImagePulls is
	// at least 2.
	// +optional
	SerializeImagePulls *bool `json:"serializeImagePulls,omitempty"`
	// RegistryPullQPS is the number of image pulls in a second. In effect without a value: 5.
	// +optional
	RegistryPullQPS *int32 `json:"registryPullQPS,omitempty"`
	// RegistryBurst is the number of image pulls in a burst. In effect without a value: 10.
	// +optional
	RegistryBurst *int32 `json:"registryBurst,omitempty"`
	// SeccompDefault defines whether the profile RuntimeDefault applies to pods that name none.
	// +optional
	SeccompDefault *bool `json:"seccompDefault,omitempty"`
	// ContainerLogMaxSize is the size at which the log of a container is rotated. In effect without a value: 100Mi.
	// +optional
	ContainerLogMaxSize *resource.Quantity `json:"containerLogMaxSize,omitempty"`
	// ContainerLogMaxFiles is the number of log files of a container, at least 2.
	// +optional
	ContainerLogMaxFiles *int32 `json:"containerLogMaxFiles,omitempty"`
	// ProtectKernelDefaults defines whether kubelet refuses to start when kernel settings are not as it expects. In effect
	// without a value: true.
	// +optional
	ProtectKernelDefaults *bool `json:"protectKernelDefaults,omitempty"`
	// StreamingConnectionIdleTimeout is the time after which an idle streaming connection is closed, of 30s to 4h. In effect
	// without a value: 5m.
	// +optional
	StreamingConnectionIdleTimeout *metav1.Duration `json:"streamingConnectionIdleTimeout,omitempty"`
	// MemorySwap defines how pods use swap.
	// +optional
	MemorySwap *MemorySwapConfiguration `json:"memorySwap,omitempty"`
	// MaxParallelImagePulls is the number of images that are pulled at a time.
	// +optional
	MaxParallelImagePulls *int32 `json:"maxParallelImagePulls,omitempty"`
	// ImageMinimumGCAge is the age from which unused images are deleted. Default: 2m.
	// +optional
	ImageMinimumGCAge *metav1.Duration `json:"imageMinimumGCAge,omitempty"`
	// ImageMaximumGCAge is the age at which unused images are deleted regardless of the disk usage. Default: 0s, which means
	// never.
	// +optional
	ImageMaximumGCAge *metav1.Duration `json:"imageMaximumGCAge,omitempty"`
	// SingleProcessOOMKill defines whether lack of memory ends single processes of a container instead of all of them.
	// +optional
	SingleProcessOOMKill *bool `json:"singleProcessOOMKill,omitempty"`
	// ImagePullCredentialsVerificationPolicy defines which pods must prove that they may use an image that is on the node. From
	// Kubernetes 1.35 on.
	// +optional
	ImagePullCredentialsVerificationPolicy *ImagePullCredentialsVerificationPolicy `json:"imagePullCredentialsVerificationPolicy,omitempty"`
	// PreloadedImagesVerificationAllowlist are the images that all pods may use, for the policy
	// NeverVerifyAllowlistedImages.
	// +listType=atomic
	// +optional
	PreloadedImagesVerificationAllowlist []string `json:"preloadedImagesVerificationAllowlist,omitempty"`
}

// ImagePullCredentialsVerificationPolicy defines which pods must prove that they may use an image that is on the node.
// +enum
// +kubebuilder:validation:Enum=NeverVerify;NeverVerifyPreloadedImages;NeverVerifyAllowlistedImages;AlwaysVerify
type ImagePullCredentialsVerificationPolicy string

// The values of ImagePullCredentialsVerificationPolicy.
const (
	// NeverVerify requires no proof.
	NeverVerify ImagePullCredentialsVerificationPolicy = "NeverVerify"
	// NeverVerifyPreloadedImages requires no proof for images that kubelet has not pulled.
	NeverVerifyPreloadedImages ImagePullCredentialsVerificationPolicy = "NeverVerifyPreloadedImages"
	// NeverVerifyAllowlistedImages requires no proof for images on the allow list.
	NeverVerifyAllowlistedImages ImagePullCredentialsVerificationPolicy = "NeverVerifyAllowlistedImages"
	// AlwaysVerify requires a proof of all pods.
	AlwaysVerify ImagePullCredentialsVerificationPolicy = "AlwaysVerify"
)

// KubeletConfigEviction are thresholds of free resources, as quantities or in percent.
type KubeletConfigEviction struct {
	// MemoryAvailable is the threshold of free memory.
	// +optional
	MemoryAvailable *string `json:"memoryAvailable,omitempty"`
	// ImageFSAvailable is the threshold of free space for images.
	// +optional
	ImageFSAvailable *string `json:"imageFSAvailable,omitempty"`
	// ImageFSInodesFree is the threshold of free inodes for images.
	// +optional
	ImageFSInodesFree *string `json:"imageFSInodesFree,omitempty"`
	// NodeFSAvailable is the threshold of free space on the root disk.
	// +optional
	NodeFSAvailable *string `json:"nodeFSAvailable,omitempty"`
	// NodeFSInodesFree is the threshold of free inodes on the root disk.
	// +optional
	NodeFSInodesFree *string `json:"nodeFSInodesFree,omitempty"`
}

// KubeletConfigEvictionMinimumReclaim is what an eviction frees at least. In effect without a value: 0.
type KubeletConfigEvictionMinimumReclaim struct {
	// MemoryAvailable is the memory that is freed.
	// +optional
	MemoryAvailable *resource.Quantity `json:"memoryAvailable,omitempty"`
	// ImageFSAvailable is the space for images that is freed.
	// +optional
	ImageFSAvailable *resource.Quantity `json:"imageFSAvailable,omitempty"`
	// ImageFSInodesFree is the inodes for images that are freed.
	// +optional
	ImageFSInodesFree *resource.Quantity `json:"imageFSInodesFree,omitempty"`
	// NodeFSAvailable is the space on the root disk that is freed.
	// +optional
	NodeFSAvailable *resource.Quantity `json:"nodeFSAvailable,omitempty"`
	// NodeFSInodesFree is the inodes on the root disk that are freed.
	// +optional
	NodeFSInodesFree *resource.Quantity `json:"nodeFSInodesFree,omitempty"`
}

// KubeletConfigEvictionSoftGracePeriod are the grace periods of soft evictions. In effect without a value: 1m30s.
type KubeletConfigEvictionSoftGracePeriod struct {
	// MemoryAvailable is the grace period of the threshold of free memory.
	// +optional
	MemoryAvailable *metav1.Duration `json:"memoryAvailable,omitempty"`
	// ImageFSAvailable is the grace period of the threshold of free space for images.
	// +optional
	ImageFSAvailable *metav1.Duration `json:"imageFSAvailable,omitempty"`
	// ImageFSInodesFree is the grace period of the threshold of free inodes for images.
	// +optional
	ImageFSInodesFree *metav1.Duration `json:"imageFSInodesFree,omitempty"`
	// NodeFSAvailable is the grace period of the threshold of free space on the root disk.
	// +optional
	NodeFSAvailable *metav1.Duration `json:"nodeFSAvailable,omitempty"`
	// NodeFSInodesFree is the grace period of the threshold of free inodes on the root disk.
	// +optional
	NodeFSInodesFree *metav1.Duration `json:"nodeFSInodesFree,omitempty"`
}

// KubeletConfigReserved is what is reserved for components on a node.
type KubeletConfigReserved struct {
	// CPU is the reserved CPU. In effect without a value: 80m.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory is the reserved memory. In effect without a value: 1Gi.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// EphemeralStorage is the reserved space on the root disk.
	// +optional
	EphemeralStorage *resource.Quantity `json:"ephemeralStorage,omitempty"`
	// PID is the reserved number of processes. In effect without a value: 20k.
	// +optional
	PID *resource.Quantity `json:"pid,omitempty"`
}

// MemorySwapConfiguration defines how pods use swap.
type MemorySwapConfiguration struct {
	// SwapBehavior is how pods use swap. Default: LimitedSwap, when the gate NodeSwap is on and failSwapOn is false.
	// +optional
	SwapBehavior *SwapBehavior `json:"swapBehavior,omitempty"`
}

// SwapBehavior is how pods use swap.
// +enum
// +kubebuilder:validation:Enum=NoSwap;LimitedSwap
type SwapBehavior string

// The values of SwapBehavior.
const (
	// NoSwap lets pods use no swap.
	NoSwap SwapBehavior = "NoSwap"
	// LimitedSwap lets some pods use swap in proportion to their memory requests.
	LimitedSwap SwapBehavior = "LimitedSwap"
)
