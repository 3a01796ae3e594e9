package validation

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// shootVersion matches a version that is complete, or that admission completes.
var shootVersion = regexp.MustCompile(`^\d+(\.\d+){0,2}$`)

func validateKubernetes(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	kubernetes := &spec.Kubernetes
	errs := required(kubernetes.Version, path.Child("version"))
	if kubernetes.Version != "" && !shootVersion.MatchString(kubernetes.Version) {
		errs = append(errs, field.Invalid(path.Child("version"), kubernetes.Version, "must be a version such as 1.34.2"))
	}
	if kubernetes.KubeAPIServer != nil {
		errs = append(errs, validateAPIServer(kubernetes.KubeAPIServer, c, path.Child("kubeAPIServer"))...)
	}
	if kubernetes.KubeControllerManager != nil {
		errs = append(errs, validateControllerManager(spec, c, path.Child("kubeControllerManager"))...)
	}
	for name, set := range map[string]bool{
		"clusterAutoscaler": kubernetes.ClusterAutoscaler != nil, "kubeScheduler": kubernetes.KubeScheduler != nil,
		"kubeProxy": kubernetes.KubeProxy != nil,
		"kubelet":   kubernetes.Kubelet != nil, "verticalPodAutoscaler": kubernetes.VerticalPodAutoscaler != nil,
	} {
		errs = append(errs, c.needsNodes(set, path.Child(name))...)
	}
	if scheduler := kubernetes.KubeScheduler; scheduler != nil {
		errs = append(errs, validateScheduler(scheduler, c, path.Child("kubeScheduler"))...)
	}
	if proxy := kubernetes.KubeProxy; proxy != nil {
		errs = append(errs, validateProxy(proxy, c, path.Child("kubeProxy"))...)
	}
	if kubernetes.Kubelet != nil {
		errs = append(errs, validateKubelet(kubernetes.Kubelet, c, path.Child("kubelet"))...)
	}
	if kubernetes.ClusterAutoscaler != nil {
		errs = append(errs, validateClusterAutoscaler(kubernetes.ClusterAutoscaler, c, path.Child("clusterAutoscaler"))...)
	}
	if kubernetes.VerticalPodAutoscaler != nil {
		errs = append(errs, validateVerticalAutoscaler(kubernetes.VerticalPodAutoscaler, path.Child("verticalPodAutoscaler"))...)
	}
	if etcd := kubernetes.ETCD; etcd != nil {
		if etcd.Main != nil {
			errs = append(errs, minAllowed(etcd.Main.Autoscaling, "0", "300M", path.Child("etcd", "main", "autoscaling"))...)
		}
		if etcd.Events != nil {
			errs = append(errs, minAllowed(etcd.Events.Autoscaling, "0", "60M", path.Child("etcd", "events", "autoscaling"))...)
		}
	}
	return errs
}

// minAllowed checks the minimum resources of a component against its requirements.
func minAllowed(autoscaling *v1beta1.ControlPlaneAutoscaling, cpu, memory string, path *field.Path) field.ErrorList {
	if autoscaling == nil {
		return nil
	}
	at := path.Child("minAllowed")
	if len(autoscaling.MinAllowed) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := cpuAndMemory(autoscaling.MinAllowed, at)
	for name, least := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	} {
		if quantity, found := autoscaling.MinAllowed[name]; found && quantity.Cmp(least) < 0 {
			errs = append(errs, field.Invalid(at.Key(string(name)), quantity.String(), "must be at least "+least.String()))
		}
	}
	return errs
}

func validateControllerManager(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	manager := spec.Kubernetes.KubeControllerManager
	errs := c.removed(manager.PodEvictionTimeout != nil, "1.33", path.Child("podEvictionTimeout"))
	errs = append(errs, featureGates(manager.FeatureGates, c, path.Child("featureGates"))...)
	for name, set := range map[string]bool{
		"horizontalPodAutoscaler": manager.HorizontalPodAutoscalerConfig != nil, "nodeCIDRMaskSize": manager.NodeCIDRMaskSize != nil,
		"nodeCIDRMaskSizeIPv6": manager.NodeCIDRMaskSizeIPv6 != nil, "nodeMonitorGracePeriod": manager.NodeMonitorGracePeriod != nil,
		"podEvictionTimeout": manager.PodEvictionTimeout != nil,
	} {
		errs = append(errs, c.needsNodes(set, path.Child(name))...)
	}
	errs = append(errs, durationAtLeast(manager.PodEvictionTimeout, 1, path.Child("podEvictionTimeout"))...)
	errs = append(errs, durationAtLeast(manager.NodeMonitorGracePeriod, 1, path.Child("nodeMonitorGracePeriod"))...)
	if spec.Networking != nil {
		errs = append(errs, validateNodeRanges(spec, path)...)
	}
	scaler, at := manager.HorizontalPodAutoscalerConfig, path.Child("horizontalPodAutoscaler")
	if scaler == nil {
		return errs
	}
	errs = append(errs, durationAtLeast(scaler.CPUInitializationPeriod, time.Second, at.Child("cpuInitializationPeriod"))...)
	errs = append(errs, durationAtLeast(scaler.DownscaleStabilization, time.Second, at.Child("downscaleStabilization"))...)
	errs = append(errs, durationAtLeast(scaler.InitialReadinessDelay, 1, at.Child("initialReadinessDelay"))...)
	errs = append(errs, durationAtLeast(scaler.SyncPeriod, time.Second, at.Child("syncPeriod"))...)
	if scaler.Tolerance != nil && *scaler.Tolerance <= 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), *scaler.Tolerance, "must be positive"))
	}
	return errs
}

// validateNodeRanges checks the prefix lengths of the nodes' ranges, and that each range holds the pods of a node.
func validateNodeRanges(spec *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	manager, families := spec.Kubernetes.KubeControllerManager, spec.Networking.IPFamilies
	ipv4, ipv6 := slices.Contains(families, v1beta1.IPFamilyIPv4), slices.Contains(families, v1beta1.IPFamilyIPv6)
	var errs field.ErrorList
	if size := manager.NodeCIDRMaskSize; size != nil {
		least, most, length := int32(16), int32(28), int32(32)
		if ipv6 && !ipv4 {
			least, most, length = 64, 124, 128
		}
		errs = append(errs, between(size, least, most, path.Child("nodeCIDRMaskSize"))...)
		pods := maxPods(spec)
		if len(errs) == 0 && bits.Len32(uint32(max(pods+1, 0))) > int(length-*size) {
			errs = append(errs, field.Invalid(path.Child("nodeCIDRMaskSize"), *size,
				fmt.Sprintf("the range of a node is too small for %d pods", pods)))
		}
	}
	if size := manager.NodeCIDRMaskSizeIPv6; size != nil {
		at := path.Child("nodeCIDRMaskSizeIPv6")
		errs = append(errs, forbidden(!ipv6, at, "the Shoot has no IPv6 addresses")...)
		errs = append(errs, forbidden(!ipv4 && manager.NodeCIDRMaskSize != nil, at,
			"must not be set together with nodeCIDRMaskSize in a Shoot with IPv6 alone")...)
		errs = append(errs, between(size, 64, 124, at)...)
	}
	return errs
}

func maxPods(spec *v1beta1.ShootSpec) int32 {
	pods := int32(110)
	if spec.Kubernetes.Kubelet != nil {
		pods = ptr.Deref(spec.Kubernetes.Kubelet.MaxPods, pods)
	}
	for _, worker := range spec.Provider.Workers {
		if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
			pods = max(pods, ptr.Deref(worker.Kubernetes.Kubelet.MaxPods, 0))
		}
	}
	return pods
}

func validateScheduler(scheduler *v1beta1.KubeSchedulerConfig, c *shootContext, path *field.Path) field.ErrorList {
	errs := featureGates(scheduler.FeatureGates, c, path.Child("featureGates"))
	errs = append(errs, optionalOneOf(scheduler.Profile, path.Child("profile"), v1beta1.SchedulingProfileBalanced,
		v1beta1.SchedulingProfileBinPacking)...)
	if volumes := scheduler.KubeMaxPDVols; volumes != nil {
		at := path.Child("kubeMaxPDVols")
		errs = append(errs, c.removed(true, "1.35", at)...)
		if n, err := strconv.Atoi(*volumes); err != nil || n < 1 {
			errs = append(errs, field.Invalid(at, *volumes, "must be a positive number"))
		}
	}
	return errs
}

func validateProxy(proxy *v1beta1.KubeProxyConfig, c *shootContext, path *field.Path) field.ErrorList {
	errs := featureGates(proxy.FeatureGates, c, path.Child("featureGates"))
	if proxy.Mode == nil {
		return append(errs, field.Required(path.Child("mode"), ""))
	}
	errs = append(errs, oneOf(*proxy.Mode, path.Child("mode"), v1beta1.ProxyModeIPTables, v1beta1.ProxyModeNFTables, v1beta1.ProxyModeIPVS)...)
	if on, set := proxy.FeatureGates["NFTablesProxyMode"]; set && !on && *proxy.Mode == v1beta1.ProxyModeNFTables {
		errs = append(errs, field.Forbidden(path.Child("mode"), "needs the feature gate NFTablesProxyMode"))
	}
	return errs
}

func validateClusterAutoscaler(scaler *v1beta1.ClusterAutoscaler, c *shootContext, path *field.Path) field.ErrorList {
	errs := between(scaler.ScaleDownUtilizationThreshold, 0, 1, path.Child("scaleDownUtilizationThreshold"))
	errs = append(errs, durationsNotNegative(path, durations{
		"scaleDownDelayAfterAdd": scaler.ScaleDownDelayAfterAdd, "scaleDownDelayAfterDelete": scaler.ScaleDownDelayAfterDelete,
		"scaleDownDelayAfterFailure": scaler.ScaleDownDelayAfterFailure, "scaleDownUnneededTime": scaler.ScaleDownUnneededTime,
		"scanInterval": scaler.ScanInterval, "maxNodeProvisionTime": scaler.MaxNodeProvisionTime, "newPodScaleUpDelay": scaler.NewPodScaleUpDelay,
		"initialNodeGroupBackoffDuration": scaler.InitialNodeGroupBackoffDuration,
		"maxNodeGroupBackoffDuration":     scaler.MaxNodeGroupBackoffDuration,
		"nodeGroupBackoffResetTimeout":    scaler.NodeGroupBackoffResetTimeout, "maxBinpackingTime": scaler.MaxBinpackingTime,
	})...)
	for name, value := range map[string]*int32{
		"maxGracefulTerminationSeconds": scaler.MaxGracefulTerminationSeconds, "maxEmptyBulkDelete": scaler.MaxEmptyBulkDelete,
		"verbosity":               scaler.Verbosity,
		"maxScaleDownParallelism": scaler.MaxScaleDownParallelism, "maxDrainParallelism": scaler.MaxDrainParallelism,
	} {
		errs = append(errs, notNegative(value, path.Child(name))...)
	}
	if scaler.Expander != nil {
		for mode := range strings.SplitSeq(string(*scaler.Expander), ",") {
			errs = append(errs, oneOf(v1beta1.ExpanderMode(mode), path.Child("expander"), v1beta1.ClusterAutoscalerExpanderLeastWaste,
				v1beta1.ClusterAutoscalerExpanderMostPods, v1beta1.ClusterAutoscalerExpanderPriority, v1beta1.ClusterAutoscalerExpanderRandom,
				v1beta1.ClusterAutoscalerExpanderLeastNodes)...)
		}
	}
	errs = append(errs, c.removed(scaler.IgnoreTaints != nil, "1.32", path.Child("ignoreTaints"))...)
	errs = append(errs, c.removed(scaler.MaxEmptyBulkDelete != nil, "1.33", path.Child("maxEmptyBulkDelete"))...)
	if bulk, most := scaler.MaxEmptyBulkDelete, scaler.MaxScaleDownParallelism; bulk != nil && most != nil && *bulk != *most {
		errs = append(errs, field.Invalid(path.Child("maxEmptyBulkDelete"), *bulk, "must be the same as maxScaleDownParallelism"))
	}
	for name, keys := range map[string][]string{"startupTaints": scaler.StartupTaints, "statusTaints": scaler.StatusTaints,
		"ignoreTaints": scaler.IgnoreTaints} {
		errs = append(errs, uniqueValues(keys, path.Child(name))...)
		for i, key := range keys {
			errs = append(errs, taintKey(key, path.Child(name).Index(i))...)
		}
	}
	return append(errs, minAllowed(scaler.Autoscaling, "10m", "30M", path.Child("autoscaling"))...)
}

func validateVerticalAutoscaler(scaler *v1beta1.VerticalPodAutoscaler, path *field.Path) field.ErrorList {
	errs := durationsNotNegative(path, durations{
		"evictAfterOOMThreshold": scaler.EvictAfterOOMThreshold, "updaterInterval": scaler.UpdaterInterval,
		"recommenderInterval":       scaler.RecommenderInterval,
		"cpuHistogramDecayHalfLife": scaler.CPUHistogramDecayHalfLife, "memoryHistogramDecayHalfLife": scaler.MemoryHistogramDecayHalfLife,
		"memoryAggregationInterval": scaler.MemoryAggregationInterval,
	})
	for name, value := range map[string]*float64{
		"evictionTolerance": scaler.EvictionTolerance, "recommendationMarginFraction": scaler.RecommendationMarginFraction,
	} {
		if value != nil && (*value < 0 || *value >= 1) {
			errs = append(errs, field.Invalid(path.Child(name), *value, "must be from 0 to less than 1"))
		}
	}
	for name, value := range map[string]*float64{
		"targetCPUPercentile": scaler.TargetCPUPercentile, "recommendationLowerBoundCPUPercentile": scaler.RecommendationLowerBoundCPUPercentile,
		"recommendationUpperBoundCPUPercentile":    scaler.RecommendationUpperBoundCPUPercentile,
		"targetMemoryPercentile":                   scaler.TargetMemoryPercentile,
		"recommendationLowerBoundMemoryPercentile": scaler.RecommendationLowerBoundMemoryPercentile,
		"recommendationUpperBoundMemoryPercentile": scaler.RecommendationUpperBoundMemoryPercentile,
	} {
		errs = append(errs, between(value, 0, 1, path.Child(name))...)
	}
	errs = append(errs, atLeast(scaler.RecommenderUpdateWorkerCount, 1, path.Child("recommenderUpdateWorkerCount"))...)
	errs = append(errs, notNegative(scaler.EvictionRateBurst, path.Child("evictionRateBurst"))...)
	errs = append(errs, notNegative(scaler.MemoryAggregationIntervalCount, path.Child("memoryAggregationIntervalCount"))...)
	errs = append(errs, verticalFeatures(scaler.FeatureGates, path.Child("featureGates"))...)
	return append(errs, cpuAndMemory(scaler.MaxAllowed, path.Child("maxAllowed"))...)
}

func taintKey(key string, path *field.Path) field.ErrorList {
	if key == criticalComponents {
		return field.ErrorList{field.Forbidden(path, "the taint is reserved")}
	}
	return messages(validation.IsQualifiedName(key), key, path)
}
