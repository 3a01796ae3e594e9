package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes is the version of Kubernetes and the settings of its components.
type Kubernetes struct {
	// ClusterAutoscaler holds the settings of cluster-autoscaler.
	// +optional
	ClusterAutoscaler *ClusterAutoscaler `json:"clusterAutoscaler,omitempty"`
	// KubeAPIServer holds the settings of kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty"`
	// KubeControllerManager holds the settings of kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty"`
	// KubeScheduler holds the settings of kube-scheduler.
	// +optional
	KubeScheduler *KubeSchedulerConfig `json:"kubeScheduler,omitempty"`
	// KubeProxy holds the settings of kube-proxy.
	// +optional
	KubeProxy *KubeProxyConfig `json:"kubeProxy,omitempty"`
	// Kubelet holds the settings of kubelet for all worker pools that have none of their own.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty"`
	// Version is the version of Kubernetes. A version without minor or patch part is completed from the CloudProfile.
	// +optional
	Version string `json:"version,omitempty"`
	// VerticalPodAutoscaler holds the settings of the Vertical Pod Autoscaler.
	// +optional
	VerticalPodAutoscaler *VerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`
	// ETCD holds the settings of etcd.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty"`
}

// KubernetesConfig is what the settings of all components have in common.
type KubernetesConfig struct {
	// FeatureGates are the feature gates that are switched on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KubeControllerManagerConfig holds the settings of kube-controller-manager.
type KubeControllerManagerConfig struct {
	KubernetesConfig `json:",inline"`
	// HorizontalPodAutoscalerConfig holds the settings of the Horizontal Pod Autoscaler.
	// +optional
	HorizontalPodAutoscalerConfig *HorizontalPodAutoscalerConfig `json:"horizontalPodAutoscaler,omitempty"`
	// NodeCIDRMaskSize is the prefix length of each node's range of pods. It is immutable. Default: enough for the pods of a
	// node.
	// +optional
	NodeCIDRMaskSize *int32 `json:"nodeCIDRMaskSize,omitempty"`
	// PodEvictionTimeout is the time after which pods on a failed node are deleted. Deprecated: forbidden from Kubernetes
	// 1.33 on.
	// +optional
	PodEvictionTimeout *metav1.Duration `json:"podEvictionTimeout,omitempty"`
	// NodeMonitorGracePeriod is the time without a sign of life after which a node is unhealthy. Default: 40s.
	// +optional
	NodeMonitorGracePeriod *metav1.Duration `json:"nodeMonitorGracePeriod,omitempty"`
	// NodeCIDRMaskSizeIPv6 is the prefix length of each node's IPv6 range in a cluster with both IP families. It is
	// immutable. Default: 64.
	// +optional
	NodeCIDRMaskSizeIPv6 *int32 `json:"nodeCIDRMaskSizeIPv6,omitempty"`
}

// HorizontalPodAutoscalerConfig holds the settings of the Horizontal Pod Autoscaler.
type HorizontalPodAutoscalerConfig struct {
	// CPUInitializationPeriod is the time after the start of a pod in which its use of CPU may be ignored. In effect without
	// a value: 5m.
	// +optional
	CPUInitializationPeriod *metav1.Duration `json:"cpuInitializationPeriod,omitempty"`
	// DownscaleStabilization is the time over which recommendations are collected before fewer pods run. In effect without a
	// value: 5m.
	// +optional
	DownscaleStabilization *metav1.Duration `json:"downscaleStabilization,omitempty"`
	// InitialReadinessDelay is the time after the start of a pod in which changes of readiness count as the first one. In
	// effect without a value: 30s.
	// +optional
	InitialReadinessDelay *metav1.Duration `json:"initialReadinessDelay,omitempty"`
	// SyncPeriod is the interval between two evaluations of the metrics. In effect without a value: 30s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// Tolerance is the deviation of metrics, as a share of the target, that is ignored. In effect without a value: 0.1.
	// +optional
	Tolerance *float64 `json:"tolerance,omitempty"`
}

// KubeSchedulerConfig holds the settings of kube-scheduler.
type KubeSchedulerConfig struct {
	KubernetesConfig `json:",inline"`
	// KubeMaxPDVols is the number of volumes that may be attached to a node. Deprecated: forbidden from Kubernetes 1.35 on.
	// +optional
	KubeMaxPDVols *string `json:"kubeMaxPDVols,omitempty"`
	// Profile is how pods are spread over nodes. Default: balanced.
	// +optional
	Profile *SchedulingProfile `json:"profile,omitempty"`
}

// SchedulingProfile is how pods are spread over nodes.
// +enum
// +kubebuilder:validation:Enum=balanced;bin-packing
type SchedulingProfile string

// The values of SchedulingProfile.
const (
	// SchedulingProfileBalanced spreads pods evenly.
	SchedulingProfileBalanced SchedulingProfile = "balanced"
	// SchedulingProfileBinPacking fills nodes, so that fewer of them are needed.
	SchedulingProfileBinPacking SchedulingProfile = "bin-packing"
)

// KubeProxyConfig holds the settings of kube-proxy.
type KubeProxyConfig struct {
	KubernetesConfig `json:",inline"`
	// Mode is how kube-proxy handles Services. Default: IPTables.
	// +optional
	Mode *ProxyMode `json:"mode,omitempty"`
	// Enabled defines whether kube-proxy is installed. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// ProxyMode is how kube-proxy handles Services.
// +enum
// +kubebuilder:validation:Enum=IPTables;IPVS;NFTables
type ProxyMode string

// The values of ProxyMode.
const (
	// ProxyModeIPTables uses iptables.
	ProxyModeIPTables ProxyMode = "IPTables"
	// ProxyModeIPVS uses IP virtual servers. Deprecated: use NFTables.
	ProxyModeIPVS ProxyMode = "IPVS"
	// ProxyModeNFTables uses nftables.
	ProxyModeNFTables ProxyMode = "NFTables"
)

// ETCD holds the settings of the two etcd clusters of a control plane.
type ETCD struct {
	// Main holds the settings of the etcd for all objects but Events.
	// +optional
	Main *ETCDConfig `json:"main,omitempty"`
	// Events holds the settings of the etcd for Events.
	// +optional
	Events *ETCDConfig `json:"events,omitempty"`
}

// ETCDConfig holds the settings of one etcd cluster.
type ETCDConfig struct {
	// Autoscaling limits how etcd is scaled.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
}

// ControlPlaneAutoscaling limits how a component of the control plane is scaled.
type ControlPlaneAutoscaling struct {
	// MinAllowed are the least CPU and memory that the component requests.
	MinAllowed corev1.ResourceList `json:"minAllowed"`
}
