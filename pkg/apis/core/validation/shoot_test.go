package validation_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestValidateShoot(t *testing.T) {
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"", "", ""},
		{"metadata/name", "a--b", "metadata.name Invalid"},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"spec/region", "''", "spec.region Required"},
		{"spec/purpose", "fun", "spec.purpose NotSupported"},
		{"spec/purpose", "infrastructure", "spec.purpose Forbidden"},
		{"spec/purpose; metadata/namespace", "infrastructure; garden", ""},
		{"spec/cloudProfile", "", "spec.cloudProfile Required"},
		{"spec/cloudProfile/kind", "Other", "spec.cloudProfile.kind NotSupported"},
		{"spec/cloudProfile/name", "''", "spec.cloudProfile.name Required"},
		{"spec/cloudProfileName", "local", "spec.cloudProfileName Forbidden"},
		{"spec/seedName", "''", "spec.seedName Invalid"},
		{"spec/credentialsBindingName", "", "spec.credentialsBindingName Required"},
		{"spec/secretBindingName", "local", "spec.secretBindingName Forbidden"},
		{"spec/exposureClassName", "a b", "spec.exposureClassName Invalid"},
		{"spec/schedulerName", "a.b", "spec.schedulerName Invalid"},
		{"spec/seedSelector/matchExpressions", "[{key: a, operator: Like}]", "spec.seedSelector Invalid"},
		{"spec/tolerations/1", "{key: example.org/dedicated, value: dev}", "spec.tolerations[1] Duplicate"},
		{"spec/tolerations/0/key", "''", "spec.tolerations[0].key Invalid"},
		{"spec/extensions/1/type", "shoot-dns-service", "spec.extensions[1].type Duplicate"},
		{"spec/extensions/1/type", "a b", "spec.extensions[1].type Invalid"},
		{"spec/resources/0/resourceRef/name", "''", "spec.resources[0].resourceRef.name Required"},
		{"spec/addons", "{kubernetesDashboard: {enabled: true}}", "spec.addons.kubernetesDashboard.enabled Forbidden"},
		{"spec/addons; spec/purpose", "{kubernetesDashboard: {enabled: true, authenticationMode: basic}}; evaluation", "spec.addons.kubernetesDashboard.authenticationMode NotSupported"},
		{"spec/addons; spec/purpose", "{nginxIngress: {enabled: true, loadBalancerSourceRanges: [a]}}; evaluation", "spec.addons.nginxIngress.loadBalancerSourceRanges[0] Invalid"},
		{"spec/addons; spec/kubernetes/version", "{}; 1.35.0", "spec.addons Forbidden"},
		{"spec/controlPlane/zones", "[a]", "spec.controlPlane.zones Invalid"},
		{"spec/controlPlane/highAvailability/failureTolerance/type", "node", "spec.controlPlane.zones Invalid"},
		{"spec/controlPlane/highAvailability/failureTolerance/type; spec/controlPlane/zones", "disk; []", "spec.controlPlane.highAvailability.failureTolerance.type NotSupported"},
		{"spec/accessRestrictions/0/name", "''", "spec.accessRestrictions[0].name Required"},
	})
}

func TestValidateShootSettings(t *testing.T) {
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"spec/dns/domain", "a_b", "spec.dns.domain Invalid"},
		{"spec/dns/domain", "", "spec.dns.domain Required"},
		{"spec/dns/providers/0/secretName; spec/kubernetes/version", "a; 1.35.0", "spec.dns.providers[0].secretName Forbidden"},
		{"spec/dns/providers/0/type", "unmanaged", "spec.dns.providers[0].credentialsRef Forbidden"},
		{"spec/dns/providers/0/type", "", "spec.dns.providers[0].type Required"},
		{"spec/dns/providers/1", "{type: other}", "spec.dns.providers[1].credentialsRef Required"},
		{"spec/dns/providers/1", "{type: local, credentialsRef: {apiVersion: v1, kind: Secret, name: dns-credentials}}", "spec.dns.providers[1] Duplicate"},
		{"spec/dns/providers/1", "{type: other, primary: true, credentialsRef: {apiVersion: v1, kind: Secret, name: a}}", "spec.dns.providers[1].primary Forbidden"},
		{"spec/dns/providers/0/credentialsRef/kind", "ConfigMap", "spec.dns.providers[0].credentialsRef NotSupported"},
		{"spec/hibernation/schedules/0/start", "at noon", "spec.hibernation.schedules[0].start Invalid"},
		{"spec/hibernation/schedules/0/start", "TZ=UTC", "spec.hibernation.schedules[0].start Invalid"},
		{"spec/hibernation/schedules/0/start", "'@every 1h'", "spec.hibernation.schedules[0].start Invalid"},
		{"spec/hibernation/schedules/0/location", "Moon/Base", "spec.hibernation.schedules[0].location Invalid"},
		{"spec/hibernation/schedules/1", "{start: '0 20 * * 1,2,3,4,5'}", "spec.hibernation.schedules[1].start Duplicate"},
		{"spec/hibernation/schedules/1", "{location: UTC}", "spec.hibernation.schedules[1].start Required"},
		{"spec/monitoring/alerting/emailReceivers", "[nobody]", "spec.monitoring.alerting.emailReceivers[0] Invalid"},
		{"spec/monitoring/alerting/emailReceivers", "[a@b.org, a@b.org]", "spec.monitoring.alerting.emailReceivers[1] Duplicate"},
		{"spec/maintenance/timeWindow/begin", "22:00", "spec.maintenance.timeWindow.begin Invalid"},
		{"spec/maintenance/timeWindow/end", "220500+0100", "spec.maintenance.timeWindow Invalid"},
		{"spec/maintenance/timeWindow/end", "050000+0100", "spec.maintenance.timeWindow Invalid"},
		{"spec/maintenance/timeWindow/end", "040000+0100", ""},
		{"spec/maintenance/autoRotation/credentials/observability/rotationPeriod", "1m", "spec.maintenance.autoRotation.credentials.observability.rotationPeriod Invalid"},
		{"spec/maintenance/autoRotation/credentials/observability/rotationPeriod", "0s", ""},
		{"spec/networking", "", "spec.networking.type Required"},
		{"spec/networking/type", "a b", "spec.networking.type Invalid"},
		{"spec/networking/pods", "10.4.0.0/15", "spec.networking.services Invalid"},
		{"spec/networking/pods", "244.0.0.0/16", "spec.networking.pods Invalid"},
		{"spec/networking/nodes", "10.10.0.1/16", "spec.networking.nodes Invalid"},
		{"spec/networking/ipFamilies", "[IPv4, IPv4]", "spec.networking.ipFamilies[1] Duplicate"},
		{"spec/systemComponents/coreDNS/rewriting/commonSuffixes", "[cloud]", "spec.systemComponents.coreDNS.rewriting.commonSuffixes[0] Invalid"},
		{"spec/systemComponents/coreDNS/rewriting/commonSuffixes", "[a.b, .a.b]", "spec.systemComponents.coreDNS.rewriting.commonSuffixes[1] Duplicate"},
	})
}

func TestValidateShootKubernetes(t *testing.T) {
	const k, server, kubelet, scaler = "spec/kubernetes/", "spec/kubernetes/kubeAPIServer/", "spec/kubernetes/kubelet/", "spec/kubernetes/clusterAutoscaler/"
	const kk, ks, kl, kc = "spec.kubernetes.", "spec.kubernetes.kubeAPIServer.", "spec.kubernetes.kubelet.", "spec.kubernetes.clusterAutoscaler."
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{k + "version", "''", kk + "version Required"},
		{k + "version", "v1", kk + "version Invalid"},
		{server + "admissionPlugins/1/name", "NodeRestriction", ks + "admissionPlugins[1].disabled Forbidden"},
		{server + "admissionPlugins/1/name", "''", ks + "admissionPlugins[1].name Required"},
		{server + "apiAudiences", "['a,b']", ks + "apiAudiences[0] Invalid"},
		{server + "apiAudiences", "[a, a]", ks + "apiAudiences[1] Duplicate"},
		{server + "enableAnonymousAuthentication; " + k + "version", "true; 1.35.0", ks + "enableAnonymousAuthentication Forbidden"},
		{server + "eventTTL", "25h", ks + "eventTTL Invalid"},
		{server + "autoscaling/minAllowed/memory", "100M", ks + "autoscaling.minAllowed[memory] Invalid"},
		{server + "autoscaling/minAllowed/cpu", "10m", ks + "autoscaling.minAllowed[cpu] Invalid"},
		{server + "tlsMinVersion", "VersionTLS11", ks + "tlsMinVersion NotSupported"},
		{server + "requests/maxMutatingInflight", "2501", ks + "requests.maxMutatingInflight Invalid"},
		{server + "requests/maxNonMutatingInflight", "-1", ks + "requests.maxNonMutatingInflight Invalid"},
		{server + "logging/verbosity", "-1", ks + "logging.verbosity Invalid"},
		{server + "auditConfig/auditPolicy/configMapRef/name", "''", ks + "auditConfig.auditPolicy.configMapRef.name Required"},
		{server + "serviceAccountConfig/issuer", "http://issuer.example.org", ks + "serviceAccountConfig.issuer Invalid"},
		{server + "serviceAccountConfig/acceptedIssuers/0", "https://issuer.example.org", ks + "serviceAccountConfig.acceptedIssuers[0] Invalid"},
		{server + "serviceAccountConfig/maxTokenExpiration", "700h", ks + "serviceAccountConfig.maxTokenExpiration Invalid"},
		{server + "watchCacheSizes/resources/0/resource", "a.b", ks + "watchCacheSizes.resources[0].resource Invalid"},
		{server + "watchCacheSizes/resources/0/size", "-1", ks + "watchCacheSizes.resources[0].size Invalid"},
		{server + "encryptionConfig/provider/type", "rot13", ks + "encryptionConfig.provider.type NotSupported"},
		{server + "encryptionConfig/resources", "[secrets, configmaps]", ks + "encryptionConfig.resources[0] Forbidden"},
		{server + "encryptionConfig/resources", "['*.apps']", ks + "encryptionConfig.resources[0] Invalid"},
		{server + "encryptionConfig/resources", "[events.events.k8s.io]", ks + "encryptionConfig.resources[0] Forbidden"},
		{server + "structuredAuthentication/configMapName", "''", ks + "structuredAuthentication.configMapName Required"},
		{server + "oidcConfig; " + server + "structuredAuthentication", "{clientID: c, issuerURL: 'https://login.example.org'}; ", ""},
		{server + "oidcConfig; " + server + "structuredAuthentication", "{}; ", ks + "oidcConfig.clientID Required, " + ks + "oidcConfig.issuerURL Required"},
		{server + "oidcConfig; " + server + "structuredAuthentication", "{clientID: c, issuerURL: 'http://login.example.org'}; ", ks + "oidcConfig.issuerURL Invalid"},
		{server + "oidcConfig", "{clientID: c, issuerURL: 'https://login.example.org'}", ks + "oidcConfig Forbidden"},
		{server + "structuredAuthorization/kubeconfigs", "[]", ks + "structuredAuthorization.kubeconfigs Required"},
		{server + "featureGates", "{StructuredAuthorizationConfiguration: false}", ks + "featureGates.StructuredAuthorizationConfiguration Forbidden, " + ks + "structuredAuthorization Forbidden"},
		{k + "kubeControllerManager/nodeCIDRMaskSize", "26", kk + "kubeControllerManager.nodeCIDRMaskSize Invalid"},
		{k + "kubeControllerManager/nodeCIDRMaskSize", "15", kk + "kubeControllerManager.nodeCIDRMaskSize Invalid"},
		{k + "kubeControllerManager/nodeCIDRMaskSizeIPv6", "64", kk + "kubeControllerManager.nodeCIDRMaskSizeIPv6 Forbidden"},
		{k + "kubeControllerManager/podEvictionTimeout", "1m", kk + "kubeControllerManager.podEvictionTimeout Forbidden"},
		{k + "kubeControllerManager/horizontalPodAutoscaler/syncPeriod", "1ms", kk + "kubeControllerManager.horizontalPodAutoscaler.syncPeriod Invalid"},
		{k + "kubeControllerManager/horizontalPodAutoscaler/tolerance", "0", kk + "kubeControllerManager.horizontalPodAutoscaler.tolerance Invalid"},
		{k + "kubeScheduler/profile", "other", kk + "kubeScheduler.profile NotSupported"},
		{k + "kubeScheduler/kubeMaxPDVols", "'0'", kk + "kubeScheduler.kubeMaxPDVols Invalid"},
		{k + "kubeProxy/mode", "Other", kk + "kubeProxy.mode NotSupported"},
		{k + "kubeProxy/featureGates", "{NFTablesProxyMode: false}", kk + "kubeProxy.featureGates.NFTablesProxyMode Forbidden, " + kk + "kubeProxy.mode Forbidden"},
		{kubelet + "cpuManagerPolicy", "dynamic", kl + "cpuManagerPolicy NotSupported"},
		{kubelet + "podPidsLimit", "99", kl + "podPidsLimit Invalid"},
		{kubelet + "imageGCLowThresholdPercent", "60", kl + "imageGCLowThresholdPercent Invalid"},
		{kubelet + "serializeImagePulls", "true", kl + "maxParallelImagePulls Forbidden"},
		{kubelet + "streamingConnectionIdleTimeout", "5h", kl + "streamingConnectionIdleTimeout Invalid"},
		{kubelet + "evictionHard/memoryAvailable", "101%", kl + "evictionHard.memoryAvailable Invalid"},
		{kubelet + "evictionSoft/memoryAvailable", "much", kl + "evictionSoft.memoryAvailable Invalid"},
		{kubelet + "kubeReserved/cpu", "'-1'", kl + "kubeReserved.cpu Invalid"},
		{kubelet + "memorySwap", "{swapBehavior: LimitedSwap}", kl + "memorySwap Forbidden"},
		{kubelet + "imagePullCredentialsVerificationPolicy", "AlwaysVerify", kl + "imagePullCredentialsVerificationPolicy Forbidden"},
		{kubelet + "preloadedImagesVerificationAllowlist", "[a]", kl + "preloadedImagesVerificationAllowlist Forbidden"},
		{scaler + "expander", "random,magic", kc + "expander NotSupported"},
		{scaler + "scaleDownUtilizationThreshold", "1.1", kc + "scaleDownUtilizationThreshold Invalid"},
		{scaler + "scanInterval", "-1s", kc + "scanInterval Invalid"},
		{scaler + "ignoreTaints", "[a]", kc + "ignoreTaints Forbidden"},
		{scaler + "maxEmptyBulkDelete", "10", kc + "maxEmptyBulkDelete Forbidden"},
		{scaler + "startupTaints", "[node.gardener.cloud/critical-components-not-ready]", kc + "startupTaints[0] Forbidden"},
		{k + "verticalPodAutoscaler/evictionTolerance", "1", kk + "verticalPodAutoscaler.evictionTolerance Invalid"},
		{k + "verticalPodAutoscaler/targetCPUPercentile", "1.5", kk + "verticalPodAutoscaler.targetCPUPercentile Invalid"},
		{k + "verticalPodAutoscaler/recommenderUpdateWorkerCount", "0", kk + "verticalPodAutoscaler.recommenderUpdateWorkerCount Invalid"},
		{k + "etcd/main/autoscaling/minAllowed/memory", "299M", kk + "etcd.main.autoscaling.minAllowed[memory] Invalid"},
		{k + "etcd/events/autoscaling/minAllowed/memory", "59M", kk + "etcd.events.autoscaling.minAllowed[memory] Invalid"},
	})
}

func TestValidateShootWorkers(t *testing.T) {
	const w, ww = "spec/provider/workers/0/", "spec.provider.workers[0]."
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"spec/provider/type", "a b", "spec.provider.type Invalid"},
		{w + "name", "a-name-that-is-too-long", ww + "name TooLong"},
		{w + "maximum; " + w + "machineControllerManager", "0; ", "spec.provider.workers Forbidden, " + ww + "maximum Invalid"},
		{w + "minimum", "-1", ww + "minimum Invalid"},
		{w + "maximum; " + w + "machineControllerManager", "1; ", ww + "maximum Invalid"},
		{w + "systemComponents/allow", "false", "spec.provider.workers Forbidden"},
		{w + "priority", "-2", ww + "priority Invalid"},
		{w + "caBundle", "x", ww + "caBundle Invalid"},
		{w + "labels", "{a b: c}", ww + "labels Invalid"},
		{w + "machine/type", "''", ww + "machine.type Required"},
		{w + "machine/architecture", "mips", ww + "machine.architecture NotSupported"},
		{w + "cri/containerRuntimes/1", "{type: sandbox}", ww + "cri.containerRuntimes[1].type Duplicate"},
		{w + "taints/0/effect", "Never", ww + "taints[0].effect NotSupported"},
		{w + "taints/0/key", "node.gardener.cloud/critical-components-not-ready", ww + "taints[0].key Forbidden"},
		{w + "taints/1", "{key: example.org/dedicated, effect: PreferNoSchedule}", ww + "taints[1] Duplicate"},
		{w + "volume/size", "'50'", ww + "volume.size Invalid"},
		{w + "volume", "", ww + "dataVolumes Forbidden"},
		{w + "dataVolumes/1", "{name: kubelet, size: 1Gi}", ww + "dataVolumes[1].name Duplicate"},
		{w + "kubeletDataVolumeName", "other", ww + "kubeletDataVolumeName Invalid"},
		{w + "sysctls", "{'a b': '1'}", ww + "sysctls[a b] Invalid"},
		{w + "sysctls", "{a.b: ''}", ww + "sysctls[a.b] Required"},
		{w + "maxSurge", "0", ww + "maxUnavailable Invalid"},
		{w + "maxSurge", "many", ww + "maxSurge Invalid"},
		{w + "maxUnavailable", "101%", ww + "maxUnavailable Invalid"},
		{w + "maxSurge", "200%", ""},
		{w + "updateStrategy", "Never", ww + "updateStrategy NotSupported"},
		{w + "updateStrategy; " + w + "maxSurge; " + w + "maxUnavailable", "AutoInPlaceUpdate; 1; 0", ""},
		{w + "updateStrategy; " + w + "maxSurge", "AutoInPlaceUpdate; -1", ww + "maxSurge Invalid"},
		{w + "updateStrategy", "ManualInPlaceUpdate", ww + "maxSurge Forbidden"},
		{w + "machineControllerManager/disableHealthTimeout", "true", ww + "machineControllerManager.disableHealthTimeout Forbidden"},
		{w + "machineControllerManager/inPlaceUpdateTimeout", "1m", ww + "machineControllerManager.inPlaceUpdateTimeout Forbidden"},
		{w + "machineControllerManager/machineDrainTimeout", "-1m", ww + "machineControllerManager.machineDrainTimeout Invalid"},
		{w + "machineControllerManager/autoPreserveFailedMachineMax", "3", ww + "machineControllerManager.autoPreserveFailedMachineMax Invalid"},
		{w + "kubernetes/version", "1.35.0", ww + "kubernetes.version Forbidden"},
		{w + "kubernetes/version", "1.30.0", ww + "kubernetes.version Forbidden"},
		{w + "kubernetes/kubelet/maxPods", "-1", ww + "kubernetes.kubelet.maxPods Invalid"},
		{"spec/provider/workers/1", "{name: pool, minimum: 1, maximum: 1, machine: {type: medium}}", "spec.provider.workers[1].name Duplicate"},
	})
}

func TestValidateShootWithoutNodes(t *testing.T) {
	const why = " Forbidden"
	checkRules(t, "shoot", 1, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"", "", ""},
		{"spec/credentialsBindingName", "a", "spec.credentialsBindingName" + why},
		{"spec/addons", "{}", "spec.addons" + why},
		{"spec/networking/type", "local", "spec.networking.type" + why},
		{"spec/networking/pods", "10.0.0.0/16", "spec.networking.pods" + why},
		{"spec/networking/services", "10.0.0.0/16", ""},
		{"spec/systemComponents", "{}", "spec.systemComponents" + why},
		{"spec/kubernetes/kubelet", "{}", "spec.kubernetes.kubelet" + why},
		{"spec/kubernetes/kubeProxy/mode", "IPVS", "spec.kubernetes.kubeProxy" + why},
		{"spec/kubernetes/kubeScheduler", "{}", "spec.kubernetes.kubeScheduler" + why},
		{"spec/kubernetes/clusterAutoscaler", "{}", "spec.kubernetes.clusterAutoscaler" + why},
		{"spec/kubernetes/verticalPodAutoscaler/enabled", "true", "spec.kubernetes.verticalPodAutoscaler" + why},
		{"spec/kubernetes/kubeControllerManager/nodeMonitorGracePeriod", "1m", "spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod" + why},
		{"spec/maintenance/autoUpdate", "{kubernetesVersion: true, machineImageVersion: true}", "spec.maintenance.autoUpdate.machineImageVersion" + why},
		{"spec/maintenance/autoRotation/credentials/sshKeypair", "{}", "spec.maintenance.autoRotation.credentials.sshKeypair" + why},
		{"spec/provider/infrastructureConfig", "{kind: a}", "spec.provider.infrastructureConfig" + why},
		{"spec/provider/workersSettings", "{}", "spec.provider.workersSettings" + why},
	})
}

func TestValidateSelfHostedShoot(t *testing.T) {
	const at, where = "spec/provider/workers/0/controlPlane/", "spec.provider.workers[0].controlPlane"
	checkRules(t, "shoot", 2, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"", "", ""},
		{"spec/credentialsBindingName", "", ""},
		{"spec/seedName", "local", "spec.seedName Forbidden"},
		{"spec/hibernation", "{enabled: false}", "spec.hibernation Forbidden"},
		{"spec/provider/workers/0/maximum", "2", "spec.provider.workers[0].maximum Invalid"},
		{"metadata/namespace; " + at + "backup/credentialsRef/namespace", "garden-dev; garden-dev", where + " Forbidden"},
		{at + "backup/credentialsRef/namespace", "other", where + ".backup.credentialsRef.namespace Invalid"},
		{at + "backup/credentialsRef", "", where + ".backup.credentialsRef Required"},
		{at + "backup/credentialsRef/kind; " + at + "backup/credentialsRef/apiVersion", "WorkloadIdentity; security.gardener.cloud/v1alpha1", where + ".backup.credentialsRef NotSupported"},
		{at + "exposure/dns", "{}", where + ".exposure Forbidden"},
		{"spec/provider/workers/1", "{name: other, minimum: 1, maximum: 1, machine: {type: a}, controlPlane: {}}", "spec.provider.workers[1].controlPlane Forbidden"},
	})
}

// TestValidateSeedOfShoot checks that only a binding moves a Shoot, that it does not remove its Seed, and that it does not
// move a Shoot that is being deleted.
func TestValidateSeedOfShoot(t *testing.T) {
	const refused = "spec.seedName Forbidden"
	checkUpdates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []rule{{"spec/seedName", "other", refused}, {"spec/purpose", "testing", ""}})
	one, two := "one", "two"
	for name, test := range map[string]struct {
		now, before *string
		deleting    bool
		want        string
	}{
		"assigned": {&one, nil, false, ""}, "moved": {&two, &one, false, ""}, "removed": {nil, &one, false, refused},
		"moved while it is deleted": {&two, &one, true, "spec.seedName Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := &v1beta1.Shoot{}, &v1beta1.Shoot{}
			before.Spec.SeedName, now.Spec.SeedName = test.before, test.now
			if test.deleting {
				at := metav1.Now()
				before.DeletionTimestamp, now.DeletionTimestamp = &at, &at
			}
			compare(t, ValidateShootBinding(now, before), test.want)
		})
	}
}

func TestValidateShootUpdate(t *testing.T) {
	const w, ww = "spec/provider/workers/0/", "spec.provider.workers[0]."
	seeded := func(shoot *v1beta1.Shoot) {
		v1beta1.SetDefaultsShoot(shoot)
		seed := "local"
		shoot.Spec.SeedName = &seed
	}
	checkUpdates(t, "shoot", 0, seeded, ValidateShootUpdate, []rule{
		{"", "", ""},
		{"spec/region", "other", "spec.region Invalid"},
		{"spec/exposureClassName", "", ""},
		{"spec/exposureClassName", "other", ""},
		{"spec/exposureClassName", "a b", "spec.exposureClassName Invalid"},
		{"spec/schedulerName", "other", "spec.schedulerName Invalid"},
		{"spec/credentialsBindingName", "other", ""},
		{"spec/credentialsBindingName", "", "spec.credentialsBindingName Forbidden, spec.credentialsBindingName Required"},
		{"spec/provider/type", "other", "spec.provider.type Invalid"},
		{"spec/kubernetes/version", "1.34.1", "spec.kubernetes.version Forbidden"},
		{"spec/kubernetes/version", "1.35.0", ""},
		{"spec/kubernetes/version", "1.36.0", "spec.kubernetes.version Forbidden"},
		{"spec/dns", "", "spec.dns Forbidden"},
		{"spec/dns/domain", "other.example.org", "spec.dns.domain Invalid"},
		{"spec/networking/type", "other", "spec.networking.type Invalid"},
		{"spec/networking/pods", "10.7.0.0/16", "spec.networking.pods Invalid"},
		{"spec/networking/services", "10.7.0.0/16", "spec.networking.services Invalid"},
		{"spec/networking/nodes", "10.11.0.0/16", ""},
		{"spec/networking/ipFamilies", "[IPv4, IPv6]", ""},
		{"spec/networking/ipFamilies", "[IPv6, IPv4]", "spec.networking.ipFamilies Invalid"},
		{"spec/kubernetes/kubeControllerManager/nodeCIDRMaskSize", "23", "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize Invalid"},
		{"spec/controlPlane", "", "spec.controlPlane.highAvailability.failureTolerance.type Invalid, spec.controlPlane.zones Invalid"},
		{w + "kubernetes/version", "1.33.3", ww + "kubernetes.version Forbidden"},
		{w + "kubernetes/version", "1.34.2", ""},
		{w + "updateStrategy; " + w + "maxSurge; " + w + "maxUnavailable", "AutoInPlaceUpdate; 0; 1", ww + "updateStrategy Forbidden"},
	})
}

// TestNodesStay checks that a Shoot with worker pools cannot become one without worker pools, nor the other way round.
func TestNodesStay(t *testing.T) {
	with, without := decode(t, example(t, "shoot", 0), v1beta1.SetDefaultsShoot), decode(t, example(t, "shoot", 1), v1beta1.SetDefaultsShoot)
	for _, pair := range [][2]*v1beta1.Shoot{{with, without}, {without, with}} {
		found := false
		for _, err := range ValidateShootUpdate(pair[0], pair[1]) {
			found = found || err.Field == "spec.provider.workers" && err.Type == field.ErrorTypeForbidden
		}
		if !found {
			t.Errorf("%d worker pools can become %d", len(pair[1].Spec.Provider.Workers), len(pair[0].Spec.Provider.Workers))
		}
	}
}

// TestTemplatesMayBeInfrastructure checks that the Shoots of a template may have any purpose.
func TestTemplatesMayBeInfrastructure(t *testing.T) {
	template := decode(t, map[string]any{"spec": example(t, "shoot", 0)["spec"]}, func(template *v1beta1.ShootTemplate) {
		v1beta1.SetDefaultsShootSpec(&template.Spec, "garden-dev", "set")
		purpose := v1beta1.ShootPurposeInfrastructure
		template.Spec.Purpose = &purpose
	})
	compare(t, ValidateShootTemplate(template, "garden-dev", field.NewPath("spec", "shootTemplate")), "")
}
