package validation_test

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestNamesAndAnnotationsOfShoots(t *testing.T) {
	const annotations, at = "metadata/annotations", "metadata.annotations[shoot.gardener.cloud/cleanup-"
	period := func(of, value string) string {
		return "{shoot.gardener.cloud/cleanup-" + of + "-finalize-grace-period-seconds: '" + value + "'}"
	}
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{"metadata/name", strings.Repeat("a", 20), ""},
		{"metadata/name", strings.Repeat("a", 21), "metadata.name TooLong"},
		{annotations, period("webhooks", "0"), ""},
		{annotations, period("webhooks", "abc"), at + "webhooks-finalize-grace-period-seconds] Invalid"},
		{annotations, period("extended-apis", "-1"), at + "extended-apis-finalize-grace-period-seconds] Invalid"},
		{annotations, period("kubernetes-resources", ""), at + "kubernetes-resources-finalize-grace-period-seconds] Invalid"},
	})
}

func TestRangesOfServices(t *testing.T) {
	const services, invalid = "spec/networking/services", "spec.networking.services Invalid"
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{services, "100.64.0.0/28", ""},
		{services, "100.64.0.0/29", invalid},
		{services, "100.64.0.0/32", invalid},
	})
	checkRules(t, "shoot", 1, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{services, "100.64.0.0/29", ""},
		{services, "100.64.0.0/30", invalid},
		{services + "; spec/networking/ipFamilies", "'2001:db8::/125'; [IPv6]", ""},
		{services + "; spec/networking/ipFamilies", "'2001:db8::/126'; [IPv6]", invalid},
	})
}

func TestEncryptedResources(t *testing.T) {
	const resources, at = "spec/kubernetes/kubeAPIServer/encryptionConfig/resources", "spec.kubernetes.kubeAPIServer.encryptionConfig.resources[0] "
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{resources, "[configmaps]", ""},
		{resources, "[configmaps.core]", ""},
		{resources, "[deployments.apps]", ""},
		{resources, "[shoots.core.gardener.cloud]", ""},
		{resources, "[configmap]", at + "Invalid"},
		{resources, "[configmap.core]", at + "Invalid"},
		{resources, "[deployment.apps]", at + "Invalid"},
		{resources, "[apps/v1/deployments]", at + "Invalid"},
		{resources, "[deployments.apps/v1]", at + "Invalid"},
		{resources, "[deployments.app]", at + "Invalid"},
		{resources, "['config maps']", at + "Invalid"},
		{resources, "[a..b]", at + "Invalid"},
		{resources, "[secrets]", at + "Forbidden"},
	})
}

func TestConfigurationOfPodSecurity(t *testing.T) {
	const plugins, at = "spec/kubernetes/kubeAPIServer/admissionPlugins", "spec.kubernetes.kubeAPIServer.admissionPlugins[0].config"
	config := func(further string) string {
		return "[{name: PodSecurity, config: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration" + further + "}}]"
	}
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{plugins, config(", defaults: {enforce: baseline, enforce-version: latest, warn-version: v1.34}, exemptions: {namespaces: [a], usernames: [b], runtimeClasses: [c]}"), ""},
		{plugins, "[{name: PodSecurity, config: {kind: PodSecurityConfiguration}}]", at + ".apiVersion Required"},
		{plugins, "[{name: PodSecurity, config: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: Other}}]", at + ".kind NotSupported"},
		{plugins, "[{name: PodSecurity, config: 5}]", at + " Invalid"},
		{plugins, config(", default: {}"), at + " Invalid"},
		{plugins, config(", defaults: {enforce: strict}"), at + ".defaults.enforce NotSupported"},
		{plugins, config(", defaults: {audit-version: '1.34'}"), at + ".defaults.audit-version Invalid"},
		{plugins, config(", exemptions: {namespaces: [A]}"), at + ".exemptions.namespaces[0] Invalid"},
		{plugins, config(", exemptions: {namespaces: [a, a]}"), at + ".exemptions.namespaces[1] Duplicate"},
		{plugins, config(", exemptions: {usernames: ['']}"), at + ".exemptions.usernames[0] Required"},
		{plugins, config(", exemptions: {runtimeClasses: [A]}"), at + ".exemptions.runtimeClasses[0] Invalid"},
	})
}

func TestNodesOfHighlyAvailableSelfHostedShoots(t *testing.T) {
	const (
		w, at = "spec/provider/workers/0/", "spec.provider.workers[0]."
		high  = "spec/controlPlane; " + w + "minimum; " + w + "maximum; " + w + "maxUnavailable"
		node  = "{highAvailability: {failureTolerance: {type: node}}}; "
		zone  = "{highAvailability: {failureTolerance: {type: zone}}}; "
	)
	checkRules(t, "shoot", 2, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{high, node + "3; 3; 1", ""},
		{high, node + "1; 1; 1", at + "maximum Invalid, " + at + "minimum Invalid"},
		{high, node + "3; 4; 1", at + "maximum Invalid"},
		{high, node + "3; 3; 0", at + "maxUnavailable Invalid"},
		{high, node + "3; 3; 30%", at + "maxUnavailable Invalid"},
		{high + "; " + w + "zones", zone + "3; 3; 1; [a, b, c]", ""},
		{high + "; " + w + "zones", zone + "3; 3; 1; [a, b]", at + "zones Invalid"},
		{w + "minimum; " + w + "maximum", "3; 3", at + "maximum Invalid, " + at + "minimum Invalid"},
	})
}

func TestSettingsOfKubernetesComponents(t *testing.T) {
	const k, at = "spec/kubernetes/", "spec.kubernetes."
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{k + "kubelet/imageMinimumGCAge", "-1s", at + "kubelet.imageMinimumGCAge Invalid"},
		{k + "kubelet/imageMaximumGCAge", "-1s", at + "kubelet.imageMaximumGCAge Invalid"},
		{k + "kubelet/preloadedImagesVerificationAllowlist", "[]", at + "kubelet.preloadedImagesVerificationAllowlist Forbidden"},
		{
			k + "kubelet/imagePullCredentialsVerificationPolicy; " + k + "kubelet/preloadedImagesVerificationAllowlist; " + k + "version",
			"NeverVerifyAllowlistedImages; ['Bad Value!']; 1.35.0",
			at + "kubelet.preloadedImagesVerificationAllowlist[0] Invalid",
		},
		{k + "clusterAutoscaler/ignoreTaints", "[]", at + "clusterAutoscaler.ignoreTaints Forbidden"},
		{k + "clusterAutoscaler/autoscaling", "{}", at + "clusterAutoscaler.autoscaling.minAllowed Required"},
		{k + "etcd/main/autoscaling", "{}", at + "etcd.main.autoscaling.minAllowed Required"},
		{k + "etcd/events/autoscaling", "{}", at + "etcd.events.autoscaling.minAllowed Required"},
		{k + "kubeAPIServer/autoscaling", "{}", at + "kubeAPIServer.autoscaling.minAllowed Required"},
		{k + "verticalPodAutoscaler/evictionRateBurst", "-1", at + "verticalPodAutoscaler.evictionRateBurst Invalid"},
		{k + "verticalPodAutoscaler/memoryAggregationIntervalCount", "-1", at + "verticalPodAutoscaler.memoryAggregationIntervalCount Invalid"},
		{k + "kubeAPIServer/auditConfig/auditPolicy/configMapRef", "{name: a, namespace: 'b c'}", at + "kubeAPIServer.auditConfig.auditPolicy.configMapRef.namespace Invalid"},
		{"spec/provider/workers/0/sysctls", "{net..ipv4: '1'}", "spec.provider.workers[0].sysctls[net..ipv4] Invalid"},
		{"spec/monitoring/alerting/emailReceivers", "[a@b]", "spec.monitoring.alerting.emailReceivers[0] Invalid"},
		{"spec/monitoring/alerting/emailReceivers", "[a@b.c]", "spec.monitoring.alerting.emailReceivers[0] Invalid"},
		{"spec/monitoring/alerting/emailReceivers", "[a@b.example.org]", ""},
		{"spec/hibernation/schedules", "[{start: '', end: 0 8 * * *}]", "spec.hibernation.schedules[0].start Invalid"},
		{"spec/hibernation/schedules", "[{start: 0 8 * * *, end: ''}]", "spec.hibernation.schedules[0].end Invalid"},
	})
}

func TestChangesOfKubeletsDuringInPlaceUpdates(t *testing.T) {
	const (
		w, kubelet = "spec/provider/workers/0/", "spec/kubernetes/kubelet/maxPods"
		inPlace    = w + "updateStrategy; " + w + "maxSurge; " + w + "maxUnavailable; " + w + "kubernetes/kubelet; status/inPlaceUpdates/pendingWorkerUpdates/autoInPlaceUpdate"
		refused    = "spec.provider.workers[0] Forbidden"
	)
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		{inPlace, "AutoInPlaceUpdate; 0; 1; ; [pool]", rule{kubelet, "99", refused}},
		{inPlace, "AutoInPlaceUpdate; 0; 1; {maxPods: 50}; [pool]", rule{kubelet, "99", ""}},
		{inPlace, "AutoInPlaceUpdate; 0; 1; ; [other]", rule{kubelet, "99", ""}},
	})
}

func TestChangesInDeletion(t *testing.T) {
	const deleted, time = "metadata/deletionTimestamp", "'2026-01-01T00:00:00Z'"
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		{deleted, time, rule{"spec/purpose", "testing", "spec Forbidden"}},
		{deleted, time, rule{"metadata/labels", "{a: b}", ""}},
	})
	before := example(t, "shoot", 0)
	change(t, before, deleted+"; metadata/resourceVersion", time+"; '1'")
	now := example(t, "shoot", 0)
	change(t, now, deleted+"; metadata/resourceVersion; spec/purpose; spec/provider/workers/0/maximum", time+"; '1'; testing; 9")
	const want = "spec: Forbidden: cannot update shoot spec if deletion timestamp is set. " +
		"Requested changes: spec.provider.workers[0].maximum, spec.purpose"
	errs := ValidateShootUpdate(decode(t, now, onSeed), decode(t, before, onSeed))
	if len(errs) == 0 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
}
