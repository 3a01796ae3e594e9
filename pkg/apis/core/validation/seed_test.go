package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestValidateSeed(t *testing.T) {
	checkRules(t, "seed", 0, v1beta1.SetDefaultsSeed, ValidateSeed, []rule{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"spec/provider/type", "''", "spec.provider.type Required"},
		{"spec/provider/region", "''", "spec.provider.region Required"},
		{"spec/provider/zones", "[a, a, b]", "spec.provider.zones[1] Duplicate"},
		{"spec/ingress", "", "spec.ingress Required"},
		{"spec/ingress/domain", "a_b", "spec.ingress.domain Invalid"},
		{"spec/ingress/controller/kind", "other", "spec.ingress.controller.kind NotSupported"},
		{"spec/dns/provider", "", "spec.dns.provider Required"},
		{"spec/dns/provider/credentialsRef", "", "spec.dns.provider.credentialsRef Required"},
		{"spec/dns/provider/credentialsRef/kind", "ConfigMap", "spec.dns.provider.credentialsRef NotSupported"},
		{"spec/dns/internal", "", "spec.dns.internal Required"},
		{"spec/dns/internal/domain", "''", "spec.dns.internal.domain Required"},
		{"spec/dns/internal/credentialsRef/namespace", "", "spec.dns.internal.credentialsRef.namespace Required"},
		{"spec/dns/defaults/1", "{type: local, domain: example.org, credentialsRef: {apiVersion: v1, kind: Secret, name: a, namespace: b}}", "spec.dns.defaults[1].domain Duplicate"},
		{"spec/networks/pods", "10.1.0.0", "spec.networks.pods Invalid"},
		{"spec/networks/pods", "10.1.0.1/16", "spec.networks.pods Invalid"},
		{"spec/networks/pods", "10.0.0.0/8", "spec.networks.pods Invalid, spec.networks.services Invalid"},
		{"spec/networks/pods", "''", "spec.networks.pods Required"},
		{"spec/networks/pods", "241.0.0.0/16", "spec.networks.pods Invalid"},
		{"spec/networks/services", "64.0.0.0/7", "spec.networks.services Invalid"},
		{"spec/networks/ipFamilies", "[IPv6]", "spec.networks.nodes Invalid, spec.networks.pods Invalid, spec.networks.services Invalid, spec.networks.shootDefaults.pods Invalid, spec.networks.shootDefaults.services Invalid"},
		{"spec/networks/ipFamilies", "[IPv5]", "spec.networks.ipFamilies[0] NotSupported, spec.networks.nodes Invalid, spec.networks.pods Invalid, spec.networks.services Invalid, spec.networks.shootDefaults.pods Invalid, spec.networks.shootDefaults.services Invalid"},
		{"spec/networks/blockCIDRs/0", "a", "spec.networks.blockCIDRs[0] Invalid"},
		{"spec/networks/shootDefaults/pods", "10.4.0.0/15", "spec.networks.shootDefaults.services Invalid"},
		{"spec/backup/provider", "''", "spec.backup.provider Required"},
		{"spec/backup/provider; spec/backup/region", "other; ", "spec.backup.region Required"},
		{"spec/backup/credentialsRef", "", "spec.backup.credentialsRef Required"},
		{"spec/taints/1", "{key: seed.gardener.cloud/protected}", "spec.taints[1] Duplicate"},
		{"spec/taints/0/key", "''", "spec.taints[0].key Required"},
		{"spec/volume/minimumSize", "-1Gi", "spec.volume.minimumSize Invalid"},
		{"spec/volume/providers/1", "{purpose: etcd-main, name: ''}", "spec.volume.providers[1].name Required, spec.volume.providers[1].purpose Duplicate"},
		{"spec/settings/excessCapacityReservation/configs/0/resources", "{}", "spec.settings.excessCapacityReservation.configs[0].resources Required"},
		{"spec/settings/excessCapacityReservation/configs/0/resources/cpu", "'-1'", "spec.settings.excessCapacityReservation.configs[0].resources[cpu] Invalid"},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{key: a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 3}, {operator: Exists}]", ""},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{}]", "spec.settings.excessCapacityReservation.configs[0].tolerations[0].operator Invalid"},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{key: a b}]", "spec.settings.excessCapacityReservation.configs[0].tolerations[0].key Invalid"},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{key: a, operator: Like}]", "spec.settings.excessCapacityReservation.configs[0].tolerations[0].operator NotSupported"},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{key: a, operator: Exists, value: b}]", "spec.settings.excessCapacityReservation.configs[0].tolerations[0].value Invalid"},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{key: a, value: b c}]", "spec.settings.excessCapacityReservation.configs[0].tolerations[0].value Invalid"},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{key: a, effect: Never}]", "spec.settings.excessCapacityReservation.configs[0].tolerations[0].effect NotSupported"},
		{"spec/settings/excessCapacityReservation/configs/0/tolerations", "[{key: a, effect: NoSchedule, tolerationSeconds: 3}]", "spec.settings.excessCapacityReservation.configs[0].tolerations[0].effect Invalid"},
		{"spec/settings/loadBalancerServices/annotations", "{a b: c}", "spec.settings.loadBalancerServices.annotations Invalid"},
		{"spec/settings/loadBalancerServices/zones/0/annotations", "{a b: c}", "spec.settings.loadBalancerServices.zones[0].annotations Invalid"},
		{"metadata/annotations", "{gardener.cloud/operation: renew-kubeconfig}", ""},
		{"metadata/annotations", "{gardener.cloud/operation: renew-workload-identity-tokens}", ""},
		{"metadata/annotations", "{gardener.cloud/operation: dance}", "metadata.annotations[gardener.cloud/operation] NotSupported"},
		{"spec/settings/loadBalancerServices/class", "a b", "spec.settings.loadBalancerServices.class Invalid"},
		{"spec/settings/loadBalancerServices/externalTrafficPolicy", "None", "spec.settings.loadBalancerServices.externalTrafficPolicy NotSupported"},
		{"spec/settings/loadBalancerServices/zones/0/name", "z", "spec.settings.loadBalancerServices.zones[0].name NotSupported"},
		{"spec/settings/verticalPodAutoscaler/maxAllowed", "{storage: 1Gi}", "spec.settings.verticalPodAutoscaler.maxAllowed NotSupported"},
		{"spec/settings/verticalPodAutoscaler/featureGates", "{Other: true}", "spec.settings.verticalPodAutoscaler.featureGates[Other] NotSupported"},
		{"spec/settings/zoneSelection/mode", "Other", "spec.settings.zoneSelection.mode NotSupported"},
		{"spec/provider/zones", "[a]", "spec.settings.loadBalancerServices.zones Forbidden, spec.settings.topologyAwareRouting.enabled Forbidden"},
		{"spec/extensions/1", "{type: networking-filter}", "spec.extensions[1].type Duplicate"},
		{"spec/resources/0/resourceRef/kind", "Pod", "spec.resources[0].resourceRef NotSupported"},
		{"spec/resources/1", "{name: filter, resourceRef: {apiVersion: v1, kind: Secret, name: a}}", "spec.resources[1].name Duplicate"},
		{"spec/accessRestrictions/1", "{name: eu-access-only}", "spec.accessRestrictions[1].name Duplicate"},
	})
}

func TestValidateSeedUpdate(t *testing.T) {
	checkUpdates(t, "seed", 0, v1beta1.SetDefaultsSeed, ValidateSeedUpdate, []rule{
		{"", "", ""},
		{"spec/networks/pods", "10.7.0.0/16", "spec.networks.pods Invalid"},
		{"spec/networks/services", "10.7.0.0/16", "spec.networks.services Invalid"},
		{"spec/networks/nodes", "10.7.0.0/16", "spec.networks.nodes Invalid"},
		{"spec/networks/nodes", "", "spec.networks.nodes Invalid"},
		{"spec/networks/ipFamilies", "[IPv4, IPv6]", "spec.networks.ipFamilies Invalid"},
		{"spec/ingress/domain", "other.example.org", "spec.ingress.domain Invalid"},
		{"spec/backup", "", "spec.backup Forbidden"},
		{"spec/backup/provider", "other", "spec.backup.provider Invalid"},
		{"spec/backup/region", "other", "spec.backup.region Invalid"},
		{"spec/backup/credentialsRef/name", "other", ""},
		{"spec/dns/defaults", "[]", "spec.dns.defaults Forbidden"},
		{"spec/dns/internal/domain", "other.example.org", ""},
	})
}

func TestValidateSeedOperations(t *testing.T) {
	const path = "metadata.annotations[gardener.cloud/operation] Forbidden"
	for _, test := range []struct{ before, now, want string }{
		{"", "renew-kubeconfig", ""}, {"renew-kubeconfig", "renew-kubeconfig", ""}, {"renew-kubeconfig", "", ""},
		{"renew-kubeconfig", "renew-garden-access-secrets", path},
	} {
		with := func(operation string) *v1beta1.Seed {
			seed := decode(t, example(t, "seed", 0), v1beta1.SetDefaultsSeed)
			seed.ResourceVersion = "1"
			seed.Annotations = map[string]string{"gardener.cloud/operation": operation}
			return seed
		}
		compare(t, ValidateSeedUpdate(with(test.now), with(test.before)), test.want)
	}
}

func TestValidateSeedStatusUpdate(t *testing.T) {
	with := func(identity string) *v1beta1.Seed {
		return &v1beta1.Seed{Status: v1beta1.SeedStatus{ClusterIdentity: ptr.To(identity)}}
	}
	compare(t, ValidateSeedStatusUpdate(with("a"), &v1beta1.Seed{}), "")
	compare(t, ValidateSeedStatusUpdate(with("b"), with("a")), "status.clusterIdentity Invalid")
}

func TestValidateSeedTemplate(t *testing.T) {
	compare(t, ValidateSeedTemplate(&v1beta1.SeedTemplate{}, field.NewPath("seedConfig")), "")
}
