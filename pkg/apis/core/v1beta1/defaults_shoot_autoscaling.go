package v1beta1

import (
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

func setDefaultsClusterAutoscaler(autoscaler *ClusterAutoscaler) {
	defaulting.Pointer(&autoscaler.ScaleDownDelayAfterAdd, hours(1))
	defaulting.Pointer(&autoscaler.ScaleDownDelayAfterDelete, seconds(0))
	defaulting.Pointer(&autoscaler.ScaleDownDelayAfterFailure, minutes(3))
	defaulting.Pointer(&autoscaler.ScaleDownUnneededTime, minutes(30))
	defaulting.Pointer(&autoscaler.ScaleDownUtilizationThreshold, 0.5)
	defaulting.Pointer(&autoscaler.ScanInterval, seconds(10))
	defaulting.Pointer(&autoscaler.Expander, ClusterAutoscalerExpanderLeastWaste)
	defaulting.Pointer(&autoscaler.MaxNodeProvisionTime, minutes(20))
	defaulting.Pointer(&autoscaler.MaxGracefulTerminationSeconds, 600)
	defaulting.Pointer(&autoscaler.NewPodScaleUpDelay, seconds(0))
	defaulting.Pointer(&autoscaler.IgnoreDaemonsetsUtilization, false)
	defaulting.Pointer(&autoscaler.Verbosity, 2)
	defaulting.Pointer(&autoscaler.MaxScaleDownParallelism, ptr.Deref(autoscaler.MaxEmptyBulkDelete, 10))
	defaulting.Pointer(&autoscaler.MaxDrainParallelism, 1)
	defaulting.Pointer(&autoscaler.InitialNodeGroupBackoffDuration, minutes(5))
	defaulting.Pointer(&autoscaler.MaxNodeGroupBackoffDuration, minutes(30))
	defaulting.Pointer(&autoscaler.NodeGroupBackoffResetTimeout, hours(3))
	defaulting.Pointer(&autoscaler.EmitPerNodeGroupMetrics, false)
	defaulting.Pointer(&autoscaler.MaxBinpackingTime, minutes(5))
}

func setDefaultsVerticalPodAutoscaler(autoscaler *VerticalPodAutoscaler) {
	defaulting.Pointer(&autoscaler.EvictAfterOOMThreshold, minutes(10))
	defaulting.Pointer(&autoscaler.EvictionRateBurst, 1)
	defaulting.Pointer(&autoscaler.EvictionRateLimit, -1)
	defaulting.Pointer(&autoscaler.EvictionTolerance, 0.5)
	defaulting.Pointer(&autoscaler.RecommendationMarginFraction, 0.15)
	defaulting.Pointer(&autoscaler.UpdaterInterval, minutes(1))
	defaulting.Pointer(&autoscaler.RecommenderInterval, minutes(1))
	defaulting.Pointer(&autoscaler.TargetCPUPercentile, 0.9)
	defaulting.Pointer(&autoscaler.RecommendationLowerBoundCPUPercentile, 0.5)
	defaulting.Pointer(&autoscaler.RecommendationUpperBoundCPUPercentile, 0.95)
	defaulting.Pointer(&autoscaler.TargetMemoryPercentile, 0.9)
	defaulting.Pointer(&autoscaler.RecommendationLowerBoundMemoryPercentile, 0.5)
	defaulting.Pointer(&autoscaler.RecommendationUpperBoundMemoryPercentile, 0.95)
	defaulting.Pointer(&autoscaler.CPUHistogramDecayHalfLife, hours(24))
	defaulting.Pointer(&autoscaler.MemoryHistogramDecayHalfLife, hours(24))
	defaulting.Pointer(&autoscaler.MemoryAggregationInterval, hours(24))
	defaulting.Pointer(&autoscaler.MemoryAggregationIntervalCount, 8)
	defaulting.Pointer(&autoscaler.RecommenderUpdateWorkerCount, 10)
}
