package validation

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// imageOrPrefix matches the characters of a reference to an image, or of a prefix of such references.
var imageOrPrefix = regexp.MustCompile(`^[a-zA-Z0-9._\-/:@\[\]*]+$`)

// durations maps names of fields to optional durations.
type durations map[string]*metav1.Duration

func durationsNotNegative(path *field.Path, values durations) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(values) {
		errs = append(errs, durationAtLeast(values[name], 0, path.Child(name))...)
	}
	return errs
}

func validateKubelet(kubelet *v1beta1.KubeletConfig, c *shootContext, path *field.Path) field.ErrorList {
	errs := optionalOneOf(kubelet.CPUManagerPolicy, path.Child("cpuManagerPolicy"), "none", "static")
	errs = append(errs, featureGates(kubelet.FeatureGates, c, path.Child("featureGates"))...)
	for name, value := range map[string]*int32{
		"evictionMaxPodGracePeriod": kubelet.EvictionMaxPodGracePeriod, "maxPods": kubelet.MaxPods, "registryPullQPS": kubelet.RegistryPullQPS,
		"registryBurst": kubelet.RegistryBurst,
	} {
		errs = append(errs, notNegative(value, path.Child(name))...)
	}
	errs = append(errs, atLeast(kubelet.PodPidsLimit, 100, path.Child("podPidsLimit"))...)
	errs = append(errs, atLeast(kubelet.ContainerLogMaxFiles, 2, path.Child("containerLogMaxFiles"))...)
	errs = append(errs, atLeast(kubelet.MaxParallelImagePulls, 1, path.Child("maxParallelImagePulls"))...)
	errs = append(errs, between(kubelet.ImageGCHighThresholdPercent, 0, 100, path.Child("imageGCHighThresholdPercent"))...)
	errs = append(errs, between(kubelet.ImageGCLowThresholdPercent, 0, 100, path.Child("imageGCLowThresholdPercent"))...)
	if low, high := kubelet.ImageGCLowThresholdPercent, kubelet.ImageGCHighThresholdPercent; low != nil && high != nil && *low >= *high {
		errs = append(errs, field.Invalid(path.Child("imageGCLowThresholdPercent"), *low, "must be lower than imageGCHighThresholdPercent"))
	}
	errs = append(errs, forbidden(ptr.Deref(kubelet.MaxParallelImagePulls, 1) > 1 && ptr.Deref(kubelet.SerializeImagePulls, false),
		path.Child("maxParallelImagePulls"), "must not be more than 1 while serializeImagePulls is true")...)
	errs = append(errs, durationsNotNegative(path, durations{
		"evictionPressureTransitionPeriod": kubelet.EvictionPressureTransitionPeriod,
		"imageMinimumGCAge":                kubelet.ImageMinimumGCAge, "imageMaximumGCAge": kubelet.ImageMaximumGCAge,
	})...)
	if timeout := kubelet.StreamingConnectionIdleTimeout; timeout != nil &&
		(timeout.Duration < 30*time.Second || timeout.Duration > 4*time.Hour) {
		errs = append(errs, field.Invalid(path.Child("streamingConnectionIdleTimeout"), timeout.Duration.String(), "must be from 30s to 4h"))
	}
	if kubelet.ContainerLogMaxSize != nil {
		errs = append(errs, quantityNotNegative(*kubelet.ContainerLogMaxSize, path.Child("containerLogMaxSize"))...)
	}
	errs = append(errs, validateEviction(kubelet.EvictionHard, path.Child("evictionHard"))...)
	errs = append(errs, validateEviction(kubelet.EvictionSoft, path.Child("evictionSoft"))...)
	if grace := kubelet.EvictionSoftGracePeriod; grace != nil {
		errs = append(errs, durationsNotNegative(path.Child("evictionSoftGracePeriod"), durations{
			"memoryAvailable": grace.MemoryAvailable, "imageFSAvailable": grace.ImageFSAvailable, "imageFSInodesFree": grace.ImageFSInodesFree,
			"nodeFSAvailable": grace.NodeFSAvailable, "nodeFSInodesFree": grace.NodeFSInodesFree,
		})...)
	}
	errs = append(errs, validateReserved(kubelet, path)...)
	errs = append(errs, validateSwap(kubelet, path.Child("memorySwap"))...)
	return append(errs, validatePullCredentials(kubelet, c, path)...)
}

// validateEviction checks thresholds, which are quantities or percentages.
func validateEviction(eviction *v1beta1.KubeletConfigEviction, path *field.Path) field.ErrorList {
	if eviction == nil {
		return nil
	}
	values := map[string]*string{
		"memoryAvailable": eviction.MemoryAvailable, "imageFSAvailable": eviction.ImageFSAvailable,
		"imageFSInodesFree": eviction.ImageFSInodesFree,
		"nodeFSAvailable":   eviction.NodeFSAvailable, "nodeFSInodesFree": eviction.NodeFSInodesFree,
	}
	var errs field.ErrorList
	for _, name := range sortedKeys(values) {
		if values[name] == nil {
			continue
		}
		value := *values[name]
		if number, is := strings.CutSuffix(value, "%"); is {
			if percent, err := strconv.ParseFloat(number, 64); err != nil || percent < 0 || percent > 100 {
				errs = append(errs, field.Invalid(path.Child(name), value, "must be from 0% to 100%"))
			}
			continue
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child(name), value, "must be a quantity such as 100Mi, or a percentage"))
			continue
		}
		errs = append(errs, quantityNotNegative(quantity, path.Child(name))...)
	}
	return errs
}

func validateReserved(kubelet *v1beta1.KubeletConfig, path *field.Path) field.ErrorList {
	values := map[string]*resource.Quantity{}
	if reserved := kubelet.KubeReserved; reserved != nil {
		values["kubeReserved.cpu"], values["kubeReserved.memory"] = reserved.CPU, reserved.Memory
		values["kubeReserved.ephemeralStorage"], values["kubeReserved.pid"] = reserved.EphemeralStorage, reserved.PID
	}
	if reclaim := kubelet.EvictionMinimumReclaim; reclaim != nil {
		const at = "evictionMinimumReclaim."
		values[at+"memoryAvailable"], values[at+"imageFSAvailable"] = reclaim.MemoryAvailable, reclaim.ImageFSAvailable
		values[at+"imageFSInodesFree"], values[at+"nodeFSAvailable"] = reclaim.ImageFSInodesFree, reclaim.NodeFSAvailable
		values[at+"nodeFSInodesFree"] = reclaim.NodeFSInodesFree
	}
	var errs field.ErrorList
	for _, name := range sortedKeys(values) {
		if values[name] != nil {
			errs = append(errs, quantityNotNegative(*values[name], path.Child(name))...)
		}
	}
	return errs
}

func validateSwap(kubelet *v1beta1.KubeletConfig, path *field.Path) field.ErrorList {
	if kubelet.MemorySwap == nil {
		return nil
	}
	errs := optionalOneOf(kubelet.MemorySwap.SwapBehavior, path.Child("swapBehavior"), v1beta1.NoSwap, v1beta1.LimitedSwap)
	errs = append(errs, forbidden(ptr.Deref(kubelet.FailSwapOn, true), path, "needs failSwapOn to be false")...)
	return append(errs, forbidden(!kubelet.FeatureGates["NodeSwap"], path, "needs the feature gate NodeSwap")...)
}

func validatePullCredentials(kubelet *v1beta1.KubeletConfig, c *shootContext, path *field.Path) field.ErrorList {
	policy, at := kubelet.ImagePullCredentialsVerificationPolicy, path.Child("imagePullCredentialsVerificationPolicy")
	list := path.Child("preloadedImagesVerificationAllowlist")
	errs := optionalOneOf(policy, at, v1beta1.NeverVerify, v1beta1.NeverVerifyPreloadedImages, v1beta1.NeverVerifyAllowlistedImages,
		v1beta1.AlwaysVerify)
	if policy != nil {
		errs = append(errs, forbidden(c.version != nil && !c.atLeast("1.35"), at, "is supported from Kubernetes 1.35 on")...)
		on, set := kubelet.FeatureGates["KubeletEnsureSecretPulledImages"]
		errs = append(errs, forbidden(set && !on, at, "needs the feature gate KubeletEnsureSecretPulledImages")...)
	}
	errs = append(errs, forbidden(kubelet.PreloadedImagesVerificationAllowlist != nil &&
		ptr.Deref(policy, "") != v1beta1.NeverVerifyAllowlistedImages, list,
		"needs the policy NeverVerifyAllowlistedImages")...)
	for i, image := range kubelet.PreloadedImagesVerificationAllowlist {
		name := image[strings.LastIndex(image, "/")+1:]
		if !imageOrPrefix.MatchString(image) || strings.ContainsAny(name, ":@") || strings.Contains(strings.TrimSuffix(image, "/*"), "*") {
			errs = append(errs, field.Invalid(list.Index(i), image, "must be an image without tag and digest, or a prefix that ends in /*"))
		}
	}
	return errs
}
