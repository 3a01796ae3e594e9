package operatingsystemconfig

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// taintNotReady keeps Pods off a new node until its critical components are ready. The resource-manager removes it.
const taintNotReady = "node.gardener.cloud/critical-components-not-ready"

// kubeletConfiguration returns the configuration file of kubelet: Gardener's defaults with the settings of the pool.
func kubeletConfiguration(values Values) (string, error) {
	config := &kubeletv1beta1.KubeletConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
	}
	accessOfKubelet(config)
	limitsOfKubelet(config)
	config.ClusterDomain, config.ClusterDNS = values.ClusterDomain, values.ClusterDNS
	config.RegisterWithTaints = append(append([]corev1.Taint{}, values.Pool.Worker.Taints...), corev1.Taint{
		Key: taintNotReady, Effect: corev1.TaintEffectNoSchedule,
	})
	config.ProtectKernelDefaults = protects(values)
	evictions(config, values.Pool.Kubelet, values.Pool.MachineType)
	applySettings(config, values.Pool.Kubelet)
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("write the configuration of kubelet: %w", err)
	}
	return string(text), nil
}

// accessOfKubelet sets who may use kubelet's server, and how kubelet gets its certificates.
func accessOfKubelet(config *kubeletv1beta1.KubeletConfiguration) {
	config.Authentication = kubeletv1beta1.KubeletAuthentication{
		Anonymous: kubeletv1beta1.KubeletAnonymousAuthentication{Enabled: ptr.To(false)},
		Webhook:   kubeletv1beta1.KubeletWebhookAuthentication{Enabled: ptr.To(true), CacheTTL: metav1.Duration{Duration: 2 * time.Minute}},
		X509:      kubeletv1beta1.KubeletX509Authentication{ClientCAFile: paths.KubeletCA},
	}
	config.Authorization = kubeletv1beta1.KubeletAuthorization{
		Mode: kubeletv1beta1.KubeletAuthorizationModeWebhook,
		Webhook: kubeletv1beta1.KubeletWebhookAuthorization{
			CacheAuthorizedTTL: metav1.Duration{Duration: 5 * time.Minute}, CacheUnauthorizedTTL: metav1.Duration{Duration: 30 * time.Second},
		},
	}
	config.RotateCertificates, config.ServerTLSBootstrap = true, true
	config.ReadOnlyPort = 0
}

// limitsOfKubelet sets limits and periods.
func limitsOfKubelet(config *kubeletv1beta1.KubeletConfiguration) {
	config.CgroupDriver, config.CgroupRoot = "systemd", "/"
	config.CPUManagerPolicy = kubeletv1beta1.NoneTopologyManagerPolicy
	config.EventRecordQPS, config.EventBurst = ptr.To[int32](50), 50
	config.KubeAPIQPS, config.KubeAPIBurst = ptr.To[int32](50), 50
	config.HairpinMode = kubeletv1beta1.PromiscuousBridge
	config.MaxOpenFiles = 1000000
	config.NodeStatusUpdateFrequency = metav1.Duration{Duration: 10 * time.Second}
	config.SyncFrequency = metav1.Duration{Duration: time.Minute}
	config.VolumePluginDir = paths.Kubelet + "/volumeplugins"
	config.MaxPods, config.FailSwapOn, config.CPUCFSQuota = 110, ptr.To(true), ptr.To(true)
	config.ImageGCHighThresholdPercent, config.ImageGCLowThresholdPercent = ptr.To[int32](50), ptr.To[int32](40)
	config.SerializeImagePulls = ptr.To(true)
	config.ContainerLogMaxSize = "100Mi"
	config.StreamingConnectionIdleTimeout = metav1.Duration{Duration: 5 * time.Minute}
}

// signals are the signals of evictions, with the settings of a pool for each.
func signals(of *corev1beta1.KubeletConfigEviction) map[string]*string {
	if of == nil {
		of = &corev1beta1.KubeletConfigEviction{}
	}
	return map[string]*string{
		"memory.available": of.MemoryAvailable, "imagefs.available": of.ImageFSAvailable, "imagefs.inodesFree": of.ImageFSInodesFree,
		"nodefs.available": of.NodeFSAvailable, "nodefs.inodesFree": of.NodeFSInodesFree,
	}
}

// evictions sets when kubelet evicts Pods, and how much it then reclaims.
func evictions(config *kubeletv1beta1.KubeletConfiguration, given corev1beta1.KubeletConfig, machine *corev1beta1.MachineType) {
	hard, soft := memoryThresholds(machine)
	config.EvictionHard, config.EvictionSoft = map[string]string{}, map[string]string{}
	config.EvictionSoftGracePeriod, config.EvictionMinimumReclaim = map[string]string{}, map[string]string{}
	ofSoft, grace, reclaim := signals(given.EvictionSoft), gracePeriods(given.EvictionSoftGracePeriod), reclaims(given.EvictionMinimumReclaim)
	for signal, ofHard := range signals(given.EvictionHard) {
		usualHard, usualSoft := "5%", "10%"
		if signal == "memory.available" {
			usualHard, usualSoft = hard, soft
		}
		config.EvictionHard[signal] = ptr.Deref(ofHard, usualHard)
		config.EvictionSoft[signal] = ptr.Deref(ofSoft[signal], usualSoft)
		config.EvictionSoftGracePeriod[signal] = ptr.Deref(grace[signal], metav1.Duration{Duration: 90 * time.Second}).Duration.String()
		config.EvictionMinimumReclaim[signal] = "0Mi"
		if quantity := reclaim[signal]; quantity != nil {
			config.EvictionMinimumReclaim[signal] = quantity.String()
		}
	}
	config.EvictionMaxPodGracePeriod = ptr.Deref(given.EvictionMaxPodGracePeriod, 90)
	config.EvictionPressureTransitionPeriod = ptr.Deref(given.EvictionPressureTransitionPeriod, metav1.Duration{Duration: 4 * time.Minute})
}

func gracePeriods(of *corev1beta1.KubeletConfigEvictionSoftGracePeriod) map[string]*metav1.Duration {
	if of == nil {
		return nil
	}
	return map[string]*metav1.Duration{
		"memory.available": of.MemoryAvailable, "imagefs.available": of.ImageFSAvailable, "imagefs.inodesFree": of.ImageFSInodesFree,
		"nodefs.available": of.NodeFSAvailable, "nodefs.inodesFree": of.NodeFSInodesFree,
	}
}

func reclaims(of *corev1beta1.KubeletConfigEvictionMinimumReclaim) map[string]*resource.Quantity {
	if of == nil {
		return nil
	}
	return map[string]*resource.Quantity{
		"memory.available": of.MemoryAvailable, "imagefs.available": of.ImageFSAvailable, "imagefs.inodesFree": of.ImageFSInodesFree,
		"nodefs.available": of.NodeFSAvailable, "nodefs.inodesFree": of.NodeFSInodesFree,
	}
}

// applySettings overwrites defaults with the other settings of a pool.
func applySettings(config *kubeletv1beta1.KubeletConfiguration, given corev1beta1.KubeletConfig) {
	config.FeatureGates = given.FeatureGates
	config.KubeReserved = reservedOf(given.KubeReserved)
	config.PodPidsLimit, config.SeccompDefault = given.PodPidsLimit, given.SeccompDefault
	config.RegistryPullQPS, config.MaxParallelImagePulls = given.RegistryPullQPS, given.MaxParallelImagePulls
	config.SingleProcessOOMKill, config.ContainerLogMaxFiles = given.SingleProcessOOMKill, given.ContainerLogMaxFiles
	config.RegistryBurst = ptr.Deref(given.RegistryBurst, 0)
	config.ImageMinimumGCAge = ptr.Deref(given.ImageMinimumGCAge, metav1.Duration{})
	config.ImageMaximumGCAge = ptr.Deref(given.ImageMaximumGCAge, metav1.Duration{})
	config.PreloadedImagesVerificationAllowlist = given.PreloadedImagesVerificationAllowlist
	overwrite(&config.CPUCFSQuota, given.CPUCFSQuota)
	overwrite(&config.FailSwapOn, given.FailSwapOn)
	overwrite(&config.SerializeImagePulls, given.SerializeImagePulls)
	overwrite(&config.ImageGCHighThresholdPercent, given.ImageGCHighThresholdPercent)
	overwrite(&config.ImageGCLowThresholdPercent, given.ImageGCLowThresholdPercent)
	config.MaxPods = ptr.Deref(given.MaxPods, config.MaxPods)
	config.CPUManagerPolicy = ptr.Deref(given.CPUManagerPolicy, config.CPUManagerPolicy)
	config.StreamingConnectionIdleTimeout = ptr.Deref(given.StreamingConnectionIdleTimeout, config.StreamingConnectionIdleTimeout)
	if given.ContainerLogMaxSize != nil {
		config.ContainerLogMaxSize = given.ContainerLogMaxSize.String()
	}
	if policy := given.ImagePullCredentialsVerificationPolicy; policy != nil {
		config.ImagePullCredentialsVerificationPolicy = kubeletv1beta1.ImagePullCredentialsVerificationPolicy(*policy)
	}
	if given.MemorySwap != nil && given.MemorySwap.SwapBehavior != nil {
		config.MemorySwap.SwapBehavior = string(*given.MemorySwap.SwapBehavior)
	}
}

// overwrite sets a value if one is given.
func overwrite[T any](value **T, given *T) {
	if given != nil {
		*value = given
	}
}
