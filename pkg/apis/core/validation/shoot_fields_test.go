package validation_test

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestFieldsOfTheAPIServer(t *testing.T) {
	const server, at = "spec/kubernetes/kubeAPIServer/", "spec.kubernetes.kubeAPIServer."
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{server + "defaultNotReadyTolerationSeconds", "-1", at + "defaultNotReadyTolerationSeconds Invalid"},
		{server + "defaultUnreachableTolerationSeconds", "-1", at + "defaultUnreachableTolerationSeconds Invalid"},
		{server + "logging/httpAccessVerbosity", "-1", at + "logging.httpAccessVerbosity Invalid"},
		{server + "auditConfig/auditPolicy/configMapRef/name", "a b", at + "auditConfig.auditPolicy.configMapRef.name Invalid"},
		{server + "eventTTL", "-1s", at + "eventTTL Invalid"},
		{server + "eventTTL", "24h", ""},
		{server + "requests/maxNonMutatingInflight", "5001", at + "requests.maxNonMutatingInflight Invalid"},
		{server + "requests/maxMutatingInflight", "-1", at + "requests.maxMutatingInflight Invalid"},
		{server + "serviceAccountConfig/issuer", "https://a?b", at + "serviceAccountConfig.issuer Invalid"},
		{server + "serviceAccountConfig/issuer", "https://a#b", at + "serviceAccountConfig.issuer Invalid"},
		{server + "serviceAccountConfig/issuer", "https://u@a", at + "serviceAccountConfig.issuer Invalid"},
		{server + "serviceAccountConfig/maxTokenExpiration", "2161h", at + "serviceAccountConfig.maxTokenExpiration Invalid"},
		{server + "serviceAccountConfig/maxTokenExpiration", "0s", ""},
		{server + "serviceAccountConfig/acceptedIssuers", "[https://a.b, https://a.b]", at + "serviceAccountConfig.acceptedIssuers[1] Duplicate"},
		{server + "watchCacheSizes/resources/0/apiGroup", "Apps", at + "watchCacheSizes.resources[0].apiGroup Invalid"},
		{server + "watchCacheSizes/resources/0/resource", "Deployments", at + "watchCacheSizes.resources[0].resource Invalid"},
		{server + "watchCacheSizes/resources/0/resource", "''", at + "watchCacheSizes.resources[0].resource Required"},
		{server + "watchCacheSizes/default", "-1", at + "watchCacheSizes.default Invalid"},
		{server + "watchCacheSizes/default; spec/kubernetes/version", "1; 1.35.0", at + "watchCacheSizes.default Forbidden"},
		{server + "encryptionConfig/resources", "[Configmaps]", at + "encryptionConfig.resources[0] Invalid"},
		{server + "encryptionConfig/resources", "['configmaps.']", at + "encryptionConfig.resources[0] Invalid"},
		{server + "encryptionConfig/resources", "[configmaps, configmaps]", at + "encryptionConfig.resources[1] Duplicate"},
		{server + "encryptionConfig/resources", "[serviceipallocations]", at + "encryptionConfig.resources[0] Forbidden"},
		{server + "encryptionConfig/resources", "[ingresses.extensions]", at + "encryptionConfig.resources[0] Forbidden"},
		{server + "structuredAuthorization/configMapName", "''", at + "structuredAuthorization.configMapName Required"},
		{server + "featureGates; spec/kubernetes/version; spec/provider/workers/0/kubernetes", "{StructuredAuthenticationConfiguration: false}; 1.33.0; ", at + "structuredAuthentication Forbidden"},
		{server + "autoscaling/minAllowed", "{gpu: 1}", at + "autoscaling.minAllowed NotSupported"},
	})
}

func TestFieldsOfTheKubelet(t *testing.T) {
	const kubelet, at = "spec/kubernetes/kubelet/", "spec.kubernetes.kubelet."
	const policy = kubelet + "imagePullCredentialsVerificationPolicy; spec/kubernetes/version; spec/provider/workers/0/kubernetes"
	const images = kubelet + "preloadedImagesVerificationAllowlist"
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{kubelet + "evictionMaxPodGracePeriod", "-1", at + "evictionMaxPodGracePeriod Invalid"},
		{kubelet + "maxPods", "-1", at + "maxPods Invalid"},
		{kubelet + "registryPullQPS", "-1", at + "registryPullQPS Invalid"},
		{kubelet + "registryBurst", "-1", at + "registryBurst Invalid"},
		{kubelet + "containerLogMaxFiles", "1", at + "containerLogMaxFiles Invalid"},
		{kubelet + "containerLogMaxSize", "-1Mi", at + "containerLogMaxSize Invalid"},
		{kubelet + "evictionPressureTransitionPeriod", "-1s", at + "evictionPressureTransitionPeriod Invalid"},
		{kubelet + "imageGCHighThresholdPercent", "101", at + "imageGCHighThresholdPercent Invalid"},
		{kubelet + "maxParallelImagePulls", "0", at + "maxParallelImagePulls Invalid"},
		{kubelet + "streamingConnectionIdleTimeout", "29s", at + "streamingConnectionIdleTimeout Invalid"},
		{kubelet + "evictionHard/memoryAvailable", "-1%", at + "evictionHard.memoryAvailable Invalid"},
		{kubelet + "evictionHard/imageFSAvailable", "-1%", at + "evictionHard.imageFSAvailable Invalid"},
		{kubelet + "evictionHard/imageFSInodesFree", "-1%", at + "evictionHard.imageFSInodesFree Invalid"},
		{kubelet + "evictionHard/nodeFSAvailable", "-1%", at + "evictionHard.nodeFSAvailable Invalid"},
		{kubelet + "evictionHard/nodeFSInodesFree", "-1%", at + "evictionHard.nodeFSInodesFree Invalid"},
		{kubelet + "evictionSoft/memoryAvailable", "-1Mi", at + "evictionSoft.memoryAvailable Invalid"},
		{kubelet + "evictionSoft/imageFSAvailable", "-1Mi", at + "evictionSoft.imageFSAvailable Invalid"},
		{kubelet + "evictionSoft/imageFSInodesFree", "-1Mi", at + "evictionSoft.imageFSInodesFree Invalid"},
		{kubelet + "evictionSoft/nodeFSAvailable", "-1Mi", at + "evictionSoft.nodeFSAvailable Invalid"},
		{kubelet + "evictionSoft/nodeFSInodesFree", "-1Mi", at + "evictionSoft.nodeFSInodesFree Invalid"},
		{kubelet + "evictionSoftGracePeriod/memoryAvailable", "-1s", at + "evictionSoftGracePeriod.memoryAvailable Invalid"},
		{kubelet + "evictionSoftGracePeriod/imageFSAvailable", "-1s", at + "evictionSoftGracePeriod.imageFSAvailable Invalid"},
		{kubelet + "evictionSoftGracePeriod/imageFSInodesFree", "-1s", at + "evictionSoftGracePeriod.imageFSInodesFree Invalid"},
		{kubelet + "evictionSoftGracePeriod/nodeFSAvailable", "-1s", at + "evictionSoftGracePeriod.nodeFSAvailable Invalid"},
		{kubelet + "evictionSoftGracePeriod/nodeFSInodesFree", "-1s", at + "evictionSoftGracePeriod.nodeFSInodesFree Invalid"},
		{kubelet + "evictionMinimumReclaim/memoryAvailable", "-1Mi", at + "evictionMinimumReclaim.memoryAvailable Invalid"},
		{kubelet + "evictionMinimumReclaim/imageFSAvailable", "-1Mi", at + "evictionMinimumReclaim.imageFSAvailable Invalid"},
		{kubelet + "evictionMinimumReclaim/imageFSInodesFree", "-1Mi", at + "evictionMinimumReclaim.imageFSInodesFree Invalid"},
		{kubelet + "evictionMinimumReclaim/nodeFSAvailable", "-1Mi", at + "evictionMinimumReclaim.nodeFSAvailable Invalid"},
		{kubelet + "evictionMinimumReclaim/nodeFSInodesFree", "-1Mi", at + "evictionMinimumReclaim.nodeFSInodesFree Invalid"},
		{kubelet + "kubeReserved/memory", "'-1'", at + "kubeReserved.memory Invalid"},
		{kubelet + "kubeReserved/ephemeralStorage", "'-1'", at + "kubeReserved.ephemeralStorage Invalid"},
		{kubelet + "kubeReserved/pid", "'-1'", at + "kubeReserved.pid Invalid"},
		{kubelet + "memorySwap; " + kubelet + "failSwapOn; " + kubelet + "featureGates", "{swapBehavior: Much}; false; {NodeSwap: true}", at + "memorySwap.swapBehavior NotSupported"},
		{kubelet + "memorySwap; " + kubelet + "failSwapOn; " + kubelet + "featureGates", "{swapBehavior: NoSwap}; false; {NodeSwap: true}", ""},
		{kubelet + "memorySwap; " + kubelet + "failSwapOn", "{swapBehavior: NoSwap}; false", at + "memorySwap Forbidden"},
		{policy, "Sometimes; 1.35.0; ", at + "imagePullCredentialsVerificationPolicy NotSupported"},
		{policy, "AlwaysVerify; 1.35.0; ", ""},
		{policy + "; " + kubelet + "featureGates", "AlwaysVerify; 1.35.0; ; {KubeletEnsureSecretPulledImages: false}", at + "imagePullCredentialsVerificationPolicy Forbidden"},
		{policy + "; " + images, "NeverVerifyAllowlistedImages; 1.35.0; ; ['registry.example.org/*', 'example.org/a']", ""},
		{policy + "; " + images, "NeverVerifyAllowlistedImages; 1.35.0; ; ['example.org/a:1']", at + "preloadedImagesVerificationAllowlist[0] Invalid"},
		{policy + "; " + images, "NeverVerifyAllowlistedImages; 1.35.0; ; ['example.org/*/a']", at + "preloadedImagesVerificationAllowlist[0] Invalid"},
	})
}

func TestFieldsOfAutoscalers(t *testing.T) {
	const k, kk = "spec/kubernetes/", "spec.kubernetes."
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{k + "clusterAutoscaler/" + "scaleDownDelayAfterAdd", "-1s", kk + "clusterAutoscaler." + "scaleDownDelayAfterAdd Invalid"},
		{k + "clusterAutoscaler/" + "scaleDownDelayAfterDelete", "-1s", kk + "clusterAutoscaler." + "scaleDownDelayAfterDelete Invalid"},
		{k + "clusterAutoscaler/" + "scaleDownDelayAfterFailure", "-1s", kk + "clusterAutoscaler." + "scaleDownDelayAfterFailure Invalid"},
		{k + "clusterAutoscaler/" + "scaleDownUnneededTime", "-1s", kk + "clusterAutoscaler." + "scaleDownUnneededTime Invalid"},
		{k + "clusterAutoscaler/" + "maxNodeProvisionTime", "-1s", kk + "clusterAutoscaler." + "maxNodeProvisionTime Invalid"},
		{k + "clusterAutoscaler/" + "newPodScaleUpDelay", "-1s", kk + "clusterAutoscaler." + "newPodScaleUpDelay Invalid"},
		{k + "clusterAutoscaler/" + "initialNodeGroupBackoffDuration", "-1s", kk + "clusterAutoscaler." + "initialNodeGroupBackoffDuration Invalid"},
		{k + "clusterAutoscaler/" + "maxNodeGroupBackoffDuration", "-1s", kk + "clusterAutoscaler." + "maxNodeGroupBackoffDuration Invalid"},
		{k + "clusterAutoscaler/" + "nodeGroupBackoffResetTimeout", "-1s", kk + "clusterAutoscaler." + "nodeGroupBackoffResetTimeout Invalid"},
		{k + "clusterAutoscaler/" + "maxBinpackingTime", "-1s", kk + "clusterAutoscaler." + "maxBinpackingTime Invalid"},
		{k + "clusterAutoscaler/" + "maxGracefulTerminationSeconds", "-1", kk + "clusterAutoscaler." + "maxGracefulTerminationSeconds Invalid"},
		{k + "clusterAutoscaler/" + "verbosity", "-1", kk + "clusterAutoscaler." + "verbosity Invalid"},
		{k + "clusterAutoscaler/" + "maxScaleDownParallelism", "-1", kk + "clusterAutoscaler." + "maxScaleDownParallelism Invalid"},
		{k + "clusterAutoscaler/" + "maxDrainParallelism", "-1", kk + "clusterAutoscaler." + "maxDrainParallelism Invalid"},
		{k + "clusterAutoscaler/startupTaints", "[a, a]", kk + "clusterAutoscaler.startupTaints[1] Duplicate"},
		{k + "clusterAutoscaler/statusTaints", "[a b]", kk + "clusterAutoscaler.statusTaints[0] Invalid"},
		{k + "clusterAutoscaler/autoscaling", "{minAllowed: {cpu: 9m, memory: 29M}}", kk + "clusterAutoscaler.autoscaling.minAllowed[cpu] Invalid, " + kk + "clusterAutoscaler.autoscaling.minAllowed[memory] Invalid"},
		{k + "clusterAutoscaler/maxEmptyBulkDelete; spec/kubernetes/version; spec/provider/workers/0/kubernetes", "11; 1.32.0; ", kk + "clusterAutoscaler.maxEmptyBulkDelete Invalid"},
		{k + "verticalPodAutoscaler/" + "evictAfterOOMThreshold", "-1s", kk + "verticalPodAutoscaler." + "evictAfterOOMThreshold Invalid"},
		{k + "verticalPodAutoscaler/" + "updaterInterval", "-1s", kk + "verticalPodAutoscaler." + "updaterInterval Invalid"},
		{k + "verticalPodAutoscaler/" + "recommenderInterval", "-1s", kk + "verticalPodAutoscaler." + "recommenderInterval Invalid"},
		{k + "verticalPodAutoscaler/" + "cpuHistogramDecayHalfLife", "-1s", kk + "verticalPodAutoscaler." + "cpuHistogramDecayHalfLife Invalid"},
		{k + "verticalPodAutoscaler/" + "memoryHistogramDecayHalfLife", "-1s", kk + "verticalPodAutoscaler." + "memoryHistogramDecayHalfLife Invalid"},
		{k + "verticalPodAutoscaler/" + "memoryAggregationInterval", "-1s", kk + "verticalPodAutoscaler." + "memoryAggregationInterval Invalid"},
		{k + "verticalPodAutoscaler/" + "recommendationLowerBoundCPUPercentile", "1.1", kk + "verticalPodAutoscaler." + "recommendationLowerBoundCPUPercentile Invalid"},
		{k + "verticalPodAutoscaler/" + "recommendationUpperBoundCPUPercentile", "1.1", kk + "verticalPodAutoscaler." + "recommendationUpperBoundCPUPercentile Invalid"},
		{k + "verticalPodAutoscaler/" + "targetMemoryPercentile", "1.1", kk + "verticalPodAutoscaler." + "targetMemoryPercentile Invalid"},
		{k + "verticalPodAutoscaler/" + "recommendationLowerBoundMemoryPercentile", "1.1", kk + "verticalPodAutoscaler." + "recommendationLowerBoundMemoryPercentile Invalid"},
		{k + "verticalPodAutoscaler/" + "recommendationUpperBoundMemoryPercentile", "1.1", kk + "verticalPodAutoscaler." + "recommendationUpperBoundMemoryPercentile Invalid"},
		{k + "verticalPodAutoscaler/" + "recommendationMarginFraction", "-0.1", kk + "verticalPodAutoscaler." + "recommendationMarginFraction Invalid"},
		{k + "verticalPodAutoscaler/featureGates", "{Other: true}", kk + "verticalPodAutoscaler.featureGates[Other] NotSupported"},
		{k + "verticalPodAutoscaler/maxAllowed", "{gpu: 1}", kk + "verticalPodAutoscaler.maxAllowed NotSupported"},
	})
}

func TestFieldsOfTheControllerManager(t *testing.T) {
	const manager, at = "spec/kubernetes/kubeControllerManager/", "spec.kubernetes.kubeControllerManager."
	const dualStack = "spec/networking/ipFamilies; "
	const singleStack = dualStack + "spec/networking/nodes; spec/networking/pods; spec/networking/services; " + manager
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{manager + "horizontalPodAutoscaler/" + "cpuInitializationPeriod", "999ms", at + "horizontalPodAutoscaler." + "cpuInitializationPeriod Invalid"},
		{manager + "horizontalPodAutoscaler/" + "downscaleStabilization", "999ms", at + "horizontalPodAutoscaler." + "downscaleStabilization Invalid"},
		{manager + "horizontalPodAutoscaler/" + "initialReadinessDelay", "0s", at + "horizontalPodAutoscaler." + "initialReadinessDelay Invalid"},
		{manager + "nodeMonitorGracePeriod", "0s", at + "nodeMonitorGracePeriod Invalid"},
		{manager + "podEvictionTimeout; spec/kubernetes/version; spec/provider/workers/0/kubernetes", "0s; 1.32.0; ", at + "podEvictionTimeout Invalid"},
		{manager + "nodeCIDRMaskSize", "29", at + "nodeCIDRMaskSize Invalid"},
		{dualStack + manager + "nodeCIDRMaskSizeIPv6", "[IPv4, IPv6]; 125", at + "nodeCIDRMaskSizeIPv6 Invalid"},
		{dualStack + manager + "nodeCIDRMaskSizeIPv6", "[IPv4, IPv6]; 64", ""},
		{singleStack + "nodeCIDRMaskSize", "[IPv6]; 'fd00:1::/56'; 'fd00:2::/56'; 'fd00:3::/112'; 63", at + "nodeCIDRMaskSize Invalid"},
		{singleStack + "nodeCIDRMaskSize", "[IPv6]; 'fd00:1::/56'; 'fd00:2::/56'; 'fd00:3::/112'; 64", ""},
		{singleStack + "nodeCIDRMaskSize; " + manager + "nodeCIDRMaskSizeIPv6", "[IPv6]; 'fd00:1::/56'; 'fd00:2::/56'; 'fd00:3::/112'; 64; 64", at + "nodeCIDRMaskSizeIPv6 Forbidden"},
		{singleStack + "nodeCIDRMaskSize", "[IPv4]; 'fd00:1::/56'; 10.2.0.0/16; 10.3.0.0/16; 24", "spec.networking.nodes Invalid"},
		{"spec/networking/ipFamilies", "[IPv5]", "spec.networking.ipFamilies[0] NotSupported, spec.networking.nodes Invalid, spec.networking.pods Invalid, spec.networking.services Invalid"},
		{"spec/networking/type", "''", "spec.networking.type Required"},
		{"spec/kubernetes/kubeScheduler/kubeMaxPDVols; spec/kubernetes/version; spec/provider/workers/0/kubernetes", "'1'; 1.35.0; ", "spec.kubernetes.kubeScheduler.kubeMaxPDVols Forbidden"},
	})
}

func TestFurtherSettings(t *testing.T) {
	const rotation, at = "spec/maintenance/autoRotation/credentials/", "spec.maintenance.autoRotation.credentials."
	const nginx = "spec/addons/nginxIngress; spec/purpose"
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"spec/hibernation/schedules/0/end", "at noon", "spec.hibernation.schedules[0].end Invalid"},
		{"spec/maintenance/timeWindow/end", "5 pm", "spec.maintenance.timeWindow.end Invalid"},
		{rotation + "sshKeypair/rotationPeriod", "2161h", at + "sshKeypair.rotationPeriod Invalid"},
		{rotation + "etcdEncryptionKey/rotationPeriod", "29m", at + "etcdEncryptionKey.rotationPeriod Invalid"},
		{nginx, "{enabled: true, externalTrafficPolicy: Global}; evaluation", "spec.addons.nginxIngress.externalTrafficPolicy NotSupported"},
		{nginx, "{enabled: true, config: {'a b': c}}; evaluation", "spec.addons.nginxIngress.config[a b] Invalid"},
		{nginx, "{enabled: true}; production", "spec.addons.nginxIngress.enabled Forbidden"},
		{nginx, "{enabled: false}; production", ""},
		{"spec/tolerations/0/value", "a b", "spec.tolerations[0].value Invalid"},
		{"spec/tolerations/1", "{key: example.org/dedicated}", "spec.tolerations[1] Duplicate"},
		{"spec/accessRestrictions/1", "{name: eu-access-only}", "spec.accessRestrictions[1].name Duplicate"},
		{"spec/resources/1", "{name: dns-credentials, resourceRef: {apiVersion: v1, kind: Secret, name: a}}", "spec.resources[1].name Duplicate"},
		{"spec/resources/0/name", "''", "spec.resources[0].name Required"},
		{"spec/resources/0/resourceRef/kind", "Pod", "spec.resources[0].resourceRef NotSupported"},
		{"spec/controlPlane/zones", "[a, b, b]", "spec.controlPlane.zones[2] Duplicate"},
		{"spec/extensions/0/type", "''", "spec.extensions[0].type Required"},
	})
}

func TestFurtherFieldsOfWorkers(t *testing.T) {
	const w, at = "spec/provider/workers/0/", "spec.provider.workers[0]."
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{w + "machineControllerManager/" + "machineHealthTimeout", "-1s", at + "machineControllerManager." + "machineHealthTimeout Invalid"},
		{w + "machineControllerManager/" + "machineCreationTimeout", "-1s", at + "machineControllerManager." + "machineCreationTimeout Invalid"},
		{w + "machineControllerManager/" + "machinePreserveTimeout", "-1s", at + "machineControllerManager." + "machinePreserveTimeout Invalid"},
		{w + "machineControllerManager/" + "maxEvictRetries", "-1", at + "machineControllerManager." + "maxEvictRetries Invalid"},
		{w + "machineControllerManager/" + "autoPreserveFailedMachineMax", "-1", at + "machineControllerManager." + "autoPreserveFailedMachineMax Invalid"},
		{w + "taints/0/value", "a b", at + "taints[0].value Invalid"},
		{w + "taints/0/key", "a b", at + "taints[0].key Invalid"},
		{w + "annotations", "{a b: c}", at + "annotations Invalid"},
		{w + "zones", "[a, a]", at + "zones[1] Duplicate"},
		{w + "machine/image/name", "''", at + "machine.image.name Required"},
		{w + "cri/name", "docker", at + "cri.name NotSupported"},
		{w + "cri/containerRuntimes/0/type", "''", at + "cri.containerRuntimes[0].type Required"},
		{w + "kubernetes/version", "latest", at + "kubernetes.version Invalid"},
		{w + "name", "''", at + "name Required"},
		{w + "name", "a.b", at + "name Invalid"},
		{w + "volume/name", "a b", at + "volume.name Invalid"},
		{w + "dataVolumes/0/size", "40G", at + "dataVolumes[0].size Invalid"},
		{w + "dataVolumes/0/name; " + w + "kubeletDataVolumeName", "a name too long for it; ", at + "dataVolumes[0].name Invalid"},
		{w + "zones; " + w + "maximum; " + w + "machineControllerManager", "[a, b, c]; 2; ", at + "maximum Invalid"},
		{w + "maxSurge", "-1", at + "maxSurge Invalid"},
		{w + "maxUnavailable", "-1", at + "maxUnavailable Invalid"},
		{w + "updateStrategy; " + w + "maxSurge; " + w + "maxUnavailable", "ManualInPlaceUpdate; 0; 1", at + "maxUnavailable Forbidden"},
		{w + "updateStrategy; " + w + "maxSurge; " + w + "machineControllerManager", "AutoInPlaceUpdate; 0; {disableHealthTimeout: true, inPlaceUpdateTimeout: 1m}", at + "maxUnavailable Invalid"},
		{"spec/provider/type", "''", "spec.provider.type Required"},
	})
}

func TestFurtherFieldsWithoutNodes(t *testing.T) {
	const manager, at = "spec/kubernetes/kubeControllerManager/", "spec.kubernetes.kubeControllerManager."
	checkRules(t, "shoot", 1, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"spec/provider/controlPlaneConfig", "{kind: a}", "spec.provider.controlPlaneConfig Forbidden"},
		{"spec/networking/nodes", "10.0.0.0/16", "spec.networking.nodes Forbidden"},
		{"spec/networking/providerConfig", "{kind: a}", "spec.networking.providerConfig Forbidden"},
		{"spec/secretBindingName; spec/kubernetes/version", "a; '1.33'", "spec.secretBindingName Forbidden"},
		{manager + "nodeCIDRMaskSize", "24", at + "nodeCIDRMaskSize Forbidden"},
		{manager + "horizontalPodAutoscaler", "{}", at + "horizontalPodAutoscaler Forbidden"},
	})
}

func TestFurtherFieldsOfSelfHostedShoots(t *testing.T) {
	const at, where = "spec/provider/workers/0/controlPlane/", "spec.provider.workers[0].controlPlane."
	checkRules(t, "shoot", 2, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{at + "exposure/extension/type", "a b", where + "exposure.extension.type Invalid"},
		{at + "backup/provider", "''", where + "backup.provider Required"},
		{at + "backup/provider; " + at + "backup/region", "other; ", where + "backup.region Required"},
		{at + "exposure", "{dns: {}}", ""},
	})
}

// TestSizeOfAConfiguration checks that the configuration of an addon must fit into a ConfigMap.
func TestSizeOfAConfiguration(t *testing.T) {
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"spec/addons; spec/purpose", "{nginxIngress: {enabled: true, config: {a: " + strings.Repeat("a", 1<<20+1) + "}}}; evaluation", "spec.addons.nginxIngress.config TooLong"},
	})
}
