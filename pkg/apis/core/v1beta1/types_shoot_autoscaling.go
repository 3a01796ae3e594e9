package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterAutoscaler holds the settings of cluster-autoscaler.
type ClusterAutoscaler struct {
	// ScaleDownDelayAfterAdd is the time after a node was added before others are removed. Default: 1h.
	// +optional
	ScaleDownDelayAfterAdd *metav1.Duration `json:"scaleDownDelayAfterAdd,omitempty"`
	// ScaleDownDelayAfterDelete is the time after a node was removed before others are removed. Default: 0s.
	// +optional
	ScaleDownDelayAfterDelete *metav1.Duration `json:"scaleDownDelayAfterDelete,omitempty"`
	// ScaleDownDelayAfterFailure is the time after a failed removal before nodes are removed. Default: 3m.
	// +optional
	ScaleDownDelayAfterFailure *metav1.Duration `json:"scaleDownDelayAfterFailure,omitempty"`
	// ScaleDownUnneededTime is the time for which a node must have been unneeded. Default: 30m.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// ScaleDownUtilizationThreshold is the share of a node's capacity below which it is unneeded. Default: 0.5.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// ScanInterval is the interval between two evaluations of the cluster. Default: 10s.
	// +optional
	ScanInterval *metav1.Duration `json:"scanInterval,omitempty"`
	// Expander is how a worker pool is chosen to grow; several modes are separated by commas. Default: least-waste.
	// +optional
	Expander *ExpanderMode `json:"expander,omitempty"`
	// MaxNodeProvisionTime is the time in which a new node must become ready. Default: 20m.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
	// MaxGracefulTerminationSeconds is the time that pods get to end when their node is removed, in seconds. Default: 600.
	// +optional
	MaxGracefulTerminationSeconds *int32 `json:"maxGracefulTerminationSeconds,omitempty"`
	// IgnoreTaints are the taints that do not count when nodes are compared. Deprecated: use startupTaints; only before
	// Kubernetes 1.32.
	// +listType=atomic
	// +optional
	IgnoreTaints []string `json:"ignoreTaints,omitempty"`
	// NewPodScaleUpDelay is the age that a pod must have before nodes are added for it. Default: 0s.
	// +optional
	NewPodScaleUpDelay *metav1.Duration `json:"newPodScaleUpDelay,omitempty"`
	// MaxEmptyBulkDelete is the number of empty nodes that are removed at a time. Deprecated: use maxScaleDownParallelism.
	// +optional
	MaxEmptyBulkDelete *int32 `json:"maxEmptyBulkDelete,omitempty"`
	// IgnoreDaemonsetsUtilization defines whether pods of DaemonSets do not count as use of a node. Default: false.
	// +optional
	IgnoreDaemonsetsUtilization *bool `json:"ignoreDaemonsetsUtilization,omitempty"`
	// Verbosity is the verbosity of logs. Default: 2.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`
	// StartupTaints are the taints that nodes have until they are ready.
	// +listType=atomic
	// +optional
	StartupTaints []string `json:"startupTaints,omitempty"`
	// StatusTaints are the taints that express the state of a node and are ignored.
	// +listType=atomic
	// +optional
	StatusTaints []string `json:"statusTaints,omitempty"`
	// MaxScaleDownParallelism is the number of nodes that are removed at a time. Default: 10.
	// +optional
	MaxScaleDownParallelism *int32 `json:"maxScaleDownParallelism,omitempty"`
	// MaxDrainParallelism is the number of nodes with pods that are removed at a time. Default: 1.
	// +optional
	MaxDrainParallelism *int32 `json:"maxDrainParallelism,omitempty"`
	// InitialNodeGroupBackoffDuration is the first pause after a worker pool failed to grow. Default: 5m.
	// +optional
	InitialNodeGroupBackoffDuration *metav1.Duration `json:"initialNodeGroupBackoffDuration,omitempty"`
	// MaxNodeGroupBackoffDuration is the longest pause after a worker pool failed to grow. Default: 30m.
	// +optional
	MaxNodeGroupBackoffDuration *metav1.Duration `json:"maxNodeGroupBackoffDuration,omitempty"`
	// NodeGroupBackoffResetTimeout is the time after the last failure at which the pause begins from its start again.
	// Default: 3h.
	// +optional
	NodeGroupBackoffResetTimeout *metav1.Duration `json:"nodeGroupBackoffResetTimeout,omitempty"`
	// EmitPerNodeGroupMetrics defines whether there are metrics for each worker pool. Default: false.
	// +optional
	EmitPerNodeGroupMetrics *bool `json:"emitPerNodeGroupMetrics,omitempty"`
	// MaxBinpackingTime is the time for one simulation of pods on new nodes. Default: 5m.
	// +optional
	MaxBinpackingTime *metav1.Duration `json:"maxBinpackingTime,omitempty"`
	// Autoscaling limits how cluster-autoscaler itself is scaled.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
}

// ExpanderMode is how a worker pool is chosen to grow.
type ExpanderMode string

// The values of ExpanderMode.
const (
	// ClusterAutoscalerExpanderLeastWaste prefers the pool that leaves the least unused.
	ClusterAutoscalerExpanderLeastWaste ExpanderMode = "least-waste"
	// ClusterAutoscalerExpanderMostPods prefers the pool that takes the most pods.
	ClusterAutoscalerExpanderMostPods ExpanderMode = "most-pods"
	// ClusterAutoscalerExpanderPriority prefers the pool with the highest priority.
	ClusterAutoscalerExpanderPriority ExpanderMode = "priority"
	// ClusterAutoscalerExpanderRandom takes any pool.
	ClusterAutoscalerExpanderRandom ExpanderMode = "random"
	// ClusterAutoscalerExpanderLeastNodes prefers the pool that needs the fewest nodes.
	ClusterAutoscalerExpanderLeastNodes ExpanderMode = "least-nodes"
)

// VerticalPodAutoscaler holds the settings of the Vertical Pod Autoscaler.
type VerticalPodAutoscaler struct {
	// Enabled defines whether it is installed.
	Enabled bool `json:"enabled"`
	// EvictAfterOOMThreshold is the time after its start within which a pod that lacked memory is evicted. Default: 10m.
	// +optional
	EvictAfterOOMThreshold *metav1.Duration `json:"evictAfterOOMThreshold,omitempty"`
	// EvictionRateBurst is the number of evictions in a burst. Default: 1.
	// +optional
	EvictionRateBurst *int32 `json:"evictionRateBurst,omitempty"`
	// EvictionRateLimit is the number of evictions in a second. 0 and -1 mean no limit. Default: -1.
	// +optional
	EvictionRateLimit *float64 `json:"evictionRateLimit,omitempty"`
	// EvictionTolerance is the share of replicas that may be evicted at a time. Default: 0.5.
	// +optional
	EvictionTolerance *float64 `json:"evictionTolerance,omitempty"`
	// RecommendationMarginFraction is the share of the use that is added to recommendations. Default: 0.15.
	// +optional
	RecommendationMarginFraction *float64 `json:"recommendationMarginFraction,omitempty"`
	// UpdaterInterval is the time between two runs of the updater. Default: 1m.
	// +optional
	UpdaterInterval *metav1.Duration `json:"updaterInterval,omitempty"`
	// RecommenderInterval is the time between two runs of the recommender. Default: 1m.
	// +optional
	RecommenderInterval *metav1.Duration `json:"recommenderInterval,omitempty"`
	// TargetCPUPercentile is the percentile of the use of CPU that is recommended. Default: 0.9.
	// +optional
	TargetCPUPercentile *float64 `json:"targetCPUPercentile,omitempty"`
	// RecommendationLowerBoundCPUPercentile is the percentile for the lower bound of CPU. Default: 0.5.
	// +optional
	RecommendationLowerBoundCPUPercentile *float64 `json:"recommendationLowerBoundCPUPercentile,omitempty"`
	// RecommendationUpperBoundCPUPercentile is the percentile for the upper bound of CPU. Default: 0.95.
	// +optional
	RecommendationUpperBoundCPUPercentile *float64 `json:"recommendationUpperBoundCPUPercentile,omitempty"`
	// TargetMemoryPercentile is the percentile of the use of memory that is recommended. Default: 0.9.
	// +optional
	TargetMemoryPercentile *float64 `json:"targetMemoryPercentile,omitempty"`
	// RecommendationLowerBoundMemoryPercentile is the percentile for the lower bound of memory. Default: 0.5.
	// +optional
	RecommendationLowerBoundMemoryPercentile *float64 `json:"recommendationLowerBoundMemoryPercentile,omitempty"`
	// RecommendationUpperBoundMemoryPercentile is the percentile for the upper bound of memory. Default: 0.95.
	// +optional
	RecommendationUpperBoundMemoryPercentile *float64 `json:"recommendationUpperBoundMemoryPercentile,omitempty"`
	// CPUHistogramDecayHalfLife is the time after which an observed use of CPU counts half. Default: 24h.
	// +optional
	CPUHistogramDecayHalfLife *metav1.Duration `json:"cpuHistogramDecayHalfLife,omitempty"`
	// MemoryHistogramDecayHalfLife is the time after which an observed use of memory counts half. Default: 24h.
	// +optional
	MemoryHistogramDecayHalfLife *metav1.Duration `json:"memoryHistogramDecayHalfLife,omitempty"`
	// MemoryAggregationInterval is the time over which the peak of memory is taken. Default: 24h.
	// +optional
	MemoryAggregationInterval *metav1.Duration `json:"memoryAggregationInterval,omitempty"`
	// MemoryAggregationIntervalCount is the number of such intervals that are kept. Default: 8.
	// +optional
	MemoryAggregationIntervalCount *int64 `json:"memoryAggregationIntervalCount,omitempty"`
	// FeatureGates are the feature gates that are switched on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// MaxAllowed are the most CPU and memory that is recommended.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
	// RecommenderUpdateWorkerCount is the number of workers of the recommender. Default: 10.
	// +optional
	RecommenderUpdateWorkerCount *int64 `json:"recommenderUpdateWorkerCount,omitempty"`
}
