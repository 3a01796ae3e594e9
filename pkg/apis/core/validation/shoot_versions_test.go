package validation_test

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

// TestShootVersions tests the rules that depend on the version of Kubernetes.
func TestShootVersions(t *testing.T) {
	const (
		version       = "; spec/kubernetes/version; spec/provider/workers/0/kubernetes"
		k, kk         = "spec/kubernetes/", "spec.kubernetes."
		server, ks    = k + "kubeAPIServer/", kk + "kubeAPIServer."
		pool, plugins = "spec/provider/workers/0/kubernetes/", server + "admissionPlugins/1"
		plugin        = ks + "admissionPlugins[1]."
	)
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{server + "featureGates", "{Other: true}", ks + "featureGates.Other Invalid"},
		{server + "featureGates", "{AdmissionWebhookMatchConditions: true}", ks + "featureGates.AdmissionWebhookMatchConditions Forbidden"},
		{server + "featureGates", "{AnonymousAuthConfigurableEndpoints: false}", ks + "featureGates.AnonymousAuthConfigurableEndpoints Forbidden"},
		{server + "featureGates", "{AnonymousAuthConfigurableEndpoints: true, AllAlpha: false}", ""},
		{k + "kubeControllerManager/featureGates", "{Other: true}", kk + "kubeControllerManager.featureGates.Other Invalid"},
		{k + "kubeScheduler/featureGates", "{Other: true}", kk + "kubeScheduler.featureGates.Other Invalid"},
		{k + "kubeProxy/featureGates", "{Other: true}", kk + "kubeProxy.featureGates.Other Invalid"},
		{k + "kubelet/featureGates", "{Other: true}", kk + "kubelet.featureGates.Other Invalid"},
		{pool + "kubelet/featureGates", "{Other: true}", "spec.provider.workers[0].kubernetes.kubelet.featureGates.Other Invalid"},
		{k + "kubelet/featureGates", "{NodeSwap: false}", kk + "kubelet.featureGates.NodeSwap Forbidden"},
		{pool + "kubelet/featureGates", "{NodeSwap: false}", ""}, // the pool has Kubernetes 1.33
		{server + "runtimeConfig", "{other/v1: true}", ks + "runtimeConfig[other/v1] Invalid"},
		{server + "runtimeConfig", "{networking.k8s.io/v1alpha1: true}", ks + "runtimeConfig[networking.k8s.io/v1alpha1] Forbidden"},
		{server + "runtimeConfig", "{v1: false}", ks + "runtimeConfig[v1] Forbidden"},
		{server + "runtimeConfig", "{apps/v1: false}", ks + "runtimeConfig[apps/v1] Forbidden"},
		{server + "runtimeConfig", "{api/all: false}", ks + "runtimeConfig[api/all] Forbidden"},
		{server + "runtimeConfig", "{api/beta: true, apps/v1/daemonsets: true, resource.k8s.io/v1: false}", ""},
		{plugins, "{name: Other}", plugin + "name Invalid"},
		{plugins, "{name: PodResizeValidator}", plugin + "name Forbidden"},
		{plugins, "{name: PodGroupProtection}", plugin + "name Forbidden"},
		{plugins, "{name: PodSecurity, disabled: true}", plugin + "disabled Forbidden"},
		{plugins, "{name: AlwaysPullImages, config: {kind: a}}", plugin + "config Forbidden"},
		{plugins, "{name: PodSecurity, config: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration}}", ""},
		{plugins, "{name: PodSecurity, kubeconfigSecretName: a}", plugin + "kubeconfigSecretName Forbidden"},
		{plugins, "{name: ValidatingAdmissionWebhook, kubeconfigSecretName: ''}", plugin + "kubeconfigSecretName Invalid"},
		// A partial version is enough to know its features.
		{server + "featureGates" + version, "{NodeSwap: false}; '1.34'; ", ks + "featureGates.NodeSwap Forbidden"},
		{server + "featureGates" + version, "{NodeSwap: false}; '1'; ", ""},
		{k + "clusterAutoscaler/ignoreTaints" + version, "[a]; 1.31.0; ", ""},
		{"spec/secretBindingName; spec/credentialsBindingName" + version, "a; ; 1.33.0; ", ""},
		{"spec/cloudProfileName; spec/cloudProfile" + version, "local; ; 1.33.0; ", ""},
		{"spec/cloudProfileName; spec/cloudProfile", "local; ", "spec.cloudProfile Required, spec.cloudProfileName Forbidden"},
		{"spec/dns/providers/0/secretName" + version, "other; 1.33.0; ", "spec.dns.providers[0].secretName Invalid"},
		{"spec/dns/providers/0/secretName; spec/dns/providers/0/credentialsRef/kind" + version, "dns-credentials; InternalSecret; 1.33.0; ", "spec.dns.providers[0].credentialsRef NotSupported, spec.dns.providers[0].secretName Invalid"},
		{"spec/cloudProfileName" + version, "local; 1.33.0; ", "spec.cloudProfileName Forbidden"},
	})
	checkRules(t, "shoot", 1, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{server + "runtimeConfig", "{apps/v1: false}", ""},
		{server + "runtimeConfig", "{v1: false}", ks + "runtimeConfig[v1] Forbidden"},
	})
}

// TestShootCreation tests the rules for new Shoots, and the rules for all Shoots that no other test covers.
func TestShootCreation(t *testing.T) {
	const server, ks = "spec/kubernetes/kubeAPIServer/", "spec.kubernetes.kubeAPIServer."
	const pool, at = "spec/provider/workers/0/clusterAutoscaler/", "spec.provider.workers[0].clusterAutoscaler."
	const rotation = "; spec/maintenance/autoRotation"
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"metadata/finalizers", "[gardener]", "metadata.finalizers[0] Forbidden"},
		{"metadata/finalizers", "[example.org/a, gardener.cloud/reference-protection]", "metadata.finalizers[1] Forbidden"},
		{"metadata/finalizers", "[example.org/a]", ""},
		{server + "structuredAuthorization/kubeconfigs/0/authorizerName", "''", ks + "structuredAuthorization.kubeconfigs[0].authorizerName Required"},
		{server + "structuredAuthorization/kubeconfigs/0/secretName", "''", ks + "structuredAuthorization.kubeconfigs[0].secretName Required"},
		{server + "encryptionConfig/provider/type", "aesgcm", ""},
		{server + "encryptionConfig/provider/type" + rotation, "aesgcm; ", ks + "encryptionConfig.provider.type Forbidden"},
		{server + "encryptionConfig/provider/type" + rotation, "aesgcm; {credentials: {etcdEncryptionKey: {rotationPeriod: 0s}}}", ks + "encryptionConfig.provider.type Forbidden"},
		{pool + "scaleDownUtilizationThreshold", "1.1", at + "scaleDownUtilizationThreshold Invalid"},
		{pool + "scaleDownGpuUtilizationThreshold", "-0.1", at + "scaleDownGpuUtilizationThreshold Invalid"},
		{pool + "scaleDownUnneededTime", "-1s", at + "scaleDownUnneededTime Invalid"},
		{pool + "scaleDownUnreadyTime", "-1s", at + "scaleDownUnreadyTime Invalid"},
		{pool + "maxNodeProvisionTime", "-1s", at + "maxNodeProvisionTime Invalid"},
	})
}
