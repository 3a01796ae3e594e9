package v1beta1

import (
	"math/bits"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// defaultMaxPods is the default number of pods on a node.
const defaultMaxPods = 110

func setDefaultsKubernetes(kubernetes *Kubernetes, workerless bool) {
	SetDefaultsKubeAPIServerConfig(defaulting.Object(&kubernetes.KubeAPIServer))
	if kubernetes.VerticalPodAutoscaler != nil {
		setDefaultsVerticalPodAutoscaler(kubernetes.VerticalPodAutoscaler)
	}
	if kubernetes.ClusterAutoscaler != nil {
		setDefaultsClusterAutoscaler(kubernetes.ClusterAutoscaler)
	}
	if workerless {
		return
	}
	defaulting.Pointer(&kubernetes.KubeAPIServer.DefaultNotReadyTolerationSeconds, 300)
	defaulting.Pointer(&kubernetes.KubeAPIServer.DefaultUnreachableTolerationSeconds, 300)
	defaulting.Pointer(&defaulting.Object(&kubernetes.KubeControllerManager).NodeMonitorGracePeriod, seconds(40))
	defaulting.Pointer(&defaulting.Object(&kubernetes.KubeScheduler).Profile, SchedulingProfileBalanced)
	proxy := defaulting.Object(&kubernetes.KubeProxy)
	defaulting.Pointer(&proxy.Mode, ProxyModeIPTables)
	defaulting.Pointer(&proxy.Enabled, true)
	setDefaultsKubelet(defaulting.Object(&kubernetes.Kubelet))
}

// SetDefaultsKubeAPIServerConfig sets the defaults of a kube-apiserver that do not depend on whether there are nodes.
func SetDefaultsKubeAPIServerConfig(server *KubeAPIServerConfig) {
	requests := defaulting.Object(&server.Requests)
	defaulting.Pointer(&requests.MaxNonMutatingInflight, 400)
	defaulting.Pointer(&requests.MaxMutatingInflight, 200)
	defaulting.Pointer(&server.EventTTL, metav1.Duration{Duration: time.Hour})
	defaulting.Pointer(&defaulting.Object(&server.Logging).Verbosity, 2)
	defaulting.Pointer(&defaulting.Object(&server.EncryptionConfig).Provider.Type, EncryptionProviderTypeAESCBC)
}

func setDefaultsKubelet(kubelet *KubeletConfig) {
	defaulting.Pointer(&kubelet.FailSwapOn, true)
	defaulting.Pointer(&kubelet.ImageGCHighThresholdPercent, 50)
	defaulting.Pointer(&kubelet.ImageGCLowThresholdPercent, 40)
	defaulting.Pointer(&kubelet.SerializeImagePulls, ptr.Deref(kubelet.MaxParallelImagePulls, 0) < 2)
	defaulting.Pointer(&kubelet.ImageMinimumGCAge, minutes(2))
	defaulting.Pointer(&kubelet.ImageMaximumGCAge, metav1.Duration{})
	setDefaultsMemorySwap(kubelet)
}

func setDefaultsMemorySwap(kubelet *KubeletConfig) {
	if kubelet.FeatureGates["NodeSwap"] && !ptr.Deref(kubelet.FailSwapOn, true) {
		defaulting.Pointer(&defaulting.Object(&kubelet.MemorySwap).SwapBehavior, LimitedSwap)
	}
}

// setDefaultsNodeCIDRMaskSize sets the prefix lengths of the nodes' ranges, so that each range has twice as many
// addresses as a node has pods, because the addresses of terminated pods are not reused immediately.
func setDefaultsNodeCIDRMaskSize(spec *ShootSpec) {
	manager, families := spec.Kubernetes.KubeControllerManager, spec.Networking.IPFamilies
	if !slices.Contains(families, IPFamilyIPv4) {
		defaulting.Pointer(&manager.NodeCIDRMaskSize, 64)
		return
	}
	maxPods := ptr.Deref(spec.Kubernetes.Kubelet.MaxPods, defaultMaxPods)
	for _, worker := range spec.Provider.Workers {
		if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
			maxPods = max(maxPods, ptr.Deref(worker.Kubernetes.Kubelet.MaxPods, 0))
		}
	}
	if maxPods > 0 {
		defaulting.Pointer(&manager.NodeCIDRMaskSize, int32(32-bits.Len64(2*uint64(maxPods)-1))) //nolint:gosec // from 0 to 32
	}
	if slices.Contains(families, IPFamilyIPv6) {
		defaulting.Pointer(&manager.NodeCIDRMaskSizeIPv6, 64)
	}
}

func seconds(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
func minutes(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Minute} }
func hours(n int) metav1.Duration   { return metav1.Duration{Duration: time.Duration(n) * time.Hour} }
