package validation_test

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func onSeed(shoot *v1beta1.Shoot) {
	v1beta1.SetDefaultsShoot(shoot)
	seed := "local"
	shoot.Spec.SeedName = &seed
}

func TestEncryptionUpdate(t *testing.T) {
	const (
		config, at   = "spec/kubernetes/kubeAPIServer/encryptionConfig/", "spec.kubernetes.kubeAPIServer.encryptionConfig."
		resources    = at + "resources Forbidden"
		providerType = at + "provider.type Forbidden"
		state        = "status/credentials/encryptionAtRest; status/lastOperation"
		applied      = "{resources: [statefulsets.apps, configmaps], provider: {type: secretbox}}; {type: Reconcile, state: Succeeded}"
		phase        = "; status/credentials/rotation/etcdEncryptionKey/phase"
	)
	given := func(further, value, path, change, want string) stateRule {
		return stateRule{state + further, applied + value, rule{path, change, want}}
	}
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		given("", "", config+"resources", "[configmaps]", ""),
		given("", "", config+"resources", "[]", ""),
		given(phase, "; Completed", config+"resources", "[configmaps]", ""),
		given(phase, "; Preparing", config+"resources", "[configmaps]", resources),
		given(phase, "; Prepared", config+"resources", "[configmaps]", resources),
		given("; spec/hibernation/enabled", "; true", config+"resources", "[configmaps]", resources),
		given("; status/hibernated", "; true", config+"resources", "[configmaps]", resources),
		given(phase, "; Prepared", config+"resources", "[statefulsets.apps, configmaps]", ""),
		given(phase, "; Prepared", config+"resources", "[statefulsets.apps, configmaps.core]", ""),
		{"status/credentials/encryptionAtRest", "{resources: [configmaps], provider: {type: secretbox}}", rule{config + "resources", "[configmaps]", resources}},
		{"", "", rule{config + "resources", "[configmaps]", resources}},
		{"", "", rule{"", "", ""}},

		given("", "", config+"provider/type", "aescbc", ""),
		given(phase, "; Preparing", config+"provider/type", "aescbc", providerType),
		given("; status/hibernated", "; true", config+"provider/type", "aescbc", providerType),
		given("; status/lastOperation/state; status/lastOperation/type", "; Processing; Create", config+"provider/type", "aescbc", providerType),
		given("", "", config+"provider/type; "+config+"resources", "aescbc; [configmaps]", providerType),
		{"status/lastOperation", "{type: Reconcile, state: Succeeded}", rule{config + "provider/type", "aescbc", providerType}},
	})
}

func TestHibernationStart(t *testing.T) {
	const (
		state    = "status/credentials/encryptionAtRest/resources; status/credentials/rotation/"
		applied  = "[statefulsets.apps, configmaps]; "
		enabled  = "spec/hibernation/enabled"
		refused  = "spec.hibernation.enabled Forbidden"
		etcdKey  = "etcdEncryptionKey/phase"
		tokenKey = "serviceAccountKey/phase"
	)
	given := func(key, phase, want string) stateRule {
		return stateRule{state + key, applied + phase, rule{enabled, "true", want}}
	}
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		given(etcdKey, "Preparing", refused),
		given(etcdKey, "Completing", refused),
		given(etcdKey, "Prepared", ""),
		given(etcdKey, "Completed", ""),
		given(tokenKey, "Preparing", refused),
		given(tokenKey, "PreparingWithoutWorkersRollout", refused),
		given(tokenKey, "Completing", refused),
		given(tokenKey, "WaitingForWorkersRollout", ""),
		given(tokenKey, "Prepared", ""),
		{"", "", rule{enabled, "true", refused}}, // the resources to encrypt are not encrypted yet
		{enabled + "; " + state + etcdKey, "true; " + applied + "Preparing", rule{"metadata/labels", "{a: b}", ""}},
		{enabled + "; " + state + etcdKey, "true; " + applied + "Preparing", rule{enabled, "false", ""}},
	})
}

func TestControlPlaneUpdate(t *testing.T) {
	const (
		plane     = "spec/controlPlane"
		tolerance = "/highAvailability/failureTolerance/type"
		field     = "spec.controlPlane.highAvailability.failureTolerance.type Forbidden"
		zones     = "spec.controlPlane.zones Invalid"
	)
	zone := func(zones string) string {
		return "{highAvailability: {failureTolerance: {type: zone}}, zones: " + zones + "}"
	}
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		{plane, "", rule{plane + tolerance, "zone", ""}},
		{plane, "", rule{plane + tolerance, "node", ""}},
		{plane + "; spec/hibernation/enabled", "; true", rule{plane + tolerance, "zone", field}},
		{plane + "; status/hibernated", "; true", rule{plane + tolerance, "node", field}},
		{plane, "{zones: [a]}", rule{plane, zone("[a, b, c]"), ""}},
		{plane, "{zones: [a]}", rule{plane, zone("[]"), ""}},
		{plane, "{zones: [d]}", rule{plane, zone("[a, b, c]"), zones}},
		{plane, "{zones: [a]}", rule{plane, "{zones: [b]}", zones}},
		{plane, "{zones: [a]}", rule{plane, "{zones: []}", zones}},
		{"", "", rule{plane + "/zones", "[a, b, d]", zones}},
	})
}

func TestDNSProviderUpdate(t *testing.T) {
	const providers, at = "spec/dns/providers", "spec.dns.providers"
	const provider = "{type: other, credentialsRef: {apiVersion: v1, kind: Secret, name: a}"
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		{"", "", rule{providers, "[]", at + " Forbidden"}},
		{"", "", rule{providers + "/0/primary", "false", at + " Forbidden"}},
		{"", "", rule{providers + "/0/type", "other", at + "[0].type Forbidden"}},
		{"", "", rule{providers, "[" + provider + ", primary: true}]", at + "[0].type Forbidden"}},
		{"", "", rule{providers + "/0/credentialsRef/name", "other", ""}},
		{"", "", rule{providers + "/1", provider + "}", ""}},
		{providers + "/0/primary", "false", rule{providers, "[]", ""}},
	})
	checkUpdates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []rule{ // not on a Seed yet
		{providers, "[]", ""},
		{providers + "/0/primary", "false", ""},
		{providers + "/0/type", "other", ""},
	})
}

func TestUpdatesInPlace(t *testing.T) {
	const (
		w, at   = "spec/provider/workers/0/", "spec.provider.workers[0]."
		inPlace = w + "updateStrategy; " + w + "maxSurge; " + w + "maxUnavailable"
		values  = "AutoInPlaceUpdate; 0; 1"
		cache   = "spec/systemComponents/nodeLocalDNS/enabled"
		refused = "spec.systemComponents.nodeLocalDNS.enabled Forbidden"
		version = "; " + w + "kubernetes/version"
		pending = "; status/inPlaceUpdates/pendingWorkerUpdates/autoInPlaceUpdate"
		force   = "metadata/annotations"
	)
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		{inPlace, values, rule{w + "maximum", "4", ""}},
		{inPlace, values, rule{w + "machine/type", "large", at + "machine.type Invalid"}},
		{inPlace, values, rule{w + "machine/image/name", "other", at + "machine.image.name Invalid"}},
		{inPlace, values, rule{w + "machine/image/version", "1.1.9", at + "machine.image.version Forbidden"}},
		{inPlace, values, rule{w + "machine/image/version", "1.2.1", ""}},
		{"", "", rule{w + "machine/image/version", "1.1.9", ""}},
		{inPlace, values, rule{w + "volume/size", "60Gi", at + "volume Invalid"}},
		{inPlace, values, rule{w + "dataVolumes/0/size", "60Gi", at + "dataVolumes Invalid"}},
		{inPlace + version, values + "; 1.32.0", rule{w + "kubernetes/version", "1.34.0", at + "kubernetes.version Forbidden"}},
		{inPlace + version, values + "; 1.32.0", rule{w + "kubernetes/version", "1.33.0", ""}},
		{w + "kubernetes/version", "1.32.0", rule{w + "kubernetes/version", "1.34.0", ""}},

		{"", "", rule{cache, "false", ""}},
		{inPlace, values, rule{cache, "false", refused}}, // the pool has Kubernetes 1.33
		{inPlace + version, values + "; 1.34.0", rule{cache, "false", ""}},
		{inPlace + version + "; spec/kubernetes/kubeProxy/mode", values + "; 1.34.0; IPVS", rule{cache, "false", refused}},
		{inPlace + version + "; " + cache, values + "; 1.33.0; false", rule{cache, "true", refused}},

		{inPlace + pending, values + "; [pool]", rule{w + "maximum", "4", "spec.provider.workers[0] Forbidden"}},
		{inPlace + pending, values + "; [other]", rule{w + "maximum", "4", ""}},
		{inPlace + pending, values + "; [pool]", rule{w + "maximum; " + force, "4; {gardener.cloud/operation: force-in-place-update}", ""}},
		{inPlace + pending, values + "; [pool]", rule{"spec/purpose", "testing", ""}},
		{"status/inPlaceUpdates/pendingWorkerUpdates/manualInPlaceUpdate", "[pool]", rule{w + "maximum", "4", "spec.provider.workers[0] Forbidden"}},
	})
}

func TestSelfHostedUpdate(t *testing.T) {
	const w, at = "spec/provider/workers/0/", "spec.provider.workers[0]."
	const other = "{name: other, minimum: 1, maximum: 1, machine: {type: medium}"
	checkUpdates(t, "shoot", 2, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []rule{
		{w + "name", "other", at + "name Invalid"},
		{w + "controlPlane", "", "spec.provider.workers Forbidden"},
		{"spec/provider/workers/1", other + "}", ""},
		{"spec/provider/workers", "[" + other + ", controlPlane: {}}]", at + "controlPlane.backup Forbidden, " + at + "name Invalid"},
		{w + "controlPlane/backup/provider", "other", at + "controlPlane.backup.provider Invalid"},
	})
}

func TestUnchangedIssuers(t *testing.T) {
	const issuers, at = "spec/kubernetes/kubeAPIServer/serviceAccountConfig/acceptedIssuers", "spec.kubernetes.kubeAPIServer.serviceAccountConfig.acceptedIssuers"
	checkStates(t, "shoot", 0, onSeed, ValidateShootUpdate, []stateRule{
		{issuers, "[any]", rule{"metadata/labels", "{a: b}", ""}},
		{issuers, "[any]", rule{issuers, "[any, https://a.example.org]", at + "[0] Invalid"}},
	})
}

func TestShootTemplateUpdate(t *testing.T) {
	shoot := func(nodes string) *v1beta1.ShootTemplate {
		object := example(t, "shoot", 0)
		change(t, object, "spec/networking/nodes", nodes)
		return decode(t, map[string]any{"spec": object["spec"]}, func(*v1beta1.ShootTemplate) {})
	}
	compare(t, ValidateShootTemplateUpdate(shoot("10.10.0.0/16"), shoot("10.10.0.0/16"), nil), "")
	compare(t, ValidateShootTemplateUpdate(shoot("10.11.0.0/16"), shoot("10.10.0.0/16"), nil), "spec.networking.nodes Invalid")
}

func TestShootStatusUpdate(t *testing.T) {
	checkStates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootStatusUpdate, []stateRule{
		{"", "", rule{"status/uid; status/technicalID; status/clusterIdentity", "a; b; c", ""}},
		{"status/uid", "a", rule{"status/uid", "b", "status.uid Invalid"}},
		{"status/technicalID", "a", rule{"status/technicalID", "b", "status.technicalID Invalid"}},
		{"status/clusterIdentity", "a", rule{"status/clusterIdentity", "b", "status.clusterIdentity Invalid"}},
		{"status/clusterIdentity", "a", rule{"status/clusterIdentity", "", "status.clusterIdentity Invalid"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: external, url: 'https://api.example.org:6443'}]", ""}},
		{"", "", rule{"status/advertisedAddresses", "[{name: '', url: 'https://a'}]", "status.advertisedAddresses[0].name Required"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: a, url: 'https://a'}, {name: a, url: 'https://a'}]", "status.advertisedAddresses[1].name Duplicate"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: a, url: 'http://a'}]", "status.advertisedAddresses[0].url Invalid"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: a, url: 'https://user@a'}]", "status.advertisedAddresses[0].url Invalid"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: a, url: 'https://a?b'}]", "status.advertisedAddresses[0].url Invalid"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: a, url: 'https://a#b'}]", "status.advertisedAddresses[0].url Invalid"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: a, url: 'https://a/b'}]", "status.advertisedAddresses[0].url Invalid"}},
		{"", "", rule{"status/advertisedAddresses", "[{name: service-account-issuer, url: 'https://a/b'}]", ""}},
		{"", "", rule{"status/advertisedAddresses", "[{name: service-account-issuer, url: 'https://a/b?c'}]", "status.advertisedAddresses[0].url Invalid"}},
		{"", "", rule{"status/networking", "{pods: [10.0.0.0/8], nodes: [10.0.0.0/8], services: ['fd00::/112'], egressCIDRs: [1.2.3.4/32]}", ""}},
		{"", "", rule{"status/networking", "{pods: [10.0.0.1/8]}", "status.networking.pods[0] Invalid"}},
		{"", "", rule{"status/networking", "{nodes: [a]}", "status.networking.nodes[0] Invalid"}},
		{"", "", rule{"status/networking", "{services: [a]}", "status.networking.services[0] Invalid"}},
		{"", "", rule{"status/networking", "{egressCIDRs: [1.2.3.4]}", "status.networking.egressCIDRs[0] Invalid"}},
		{"", "", rule{"status/credentials/encryptionAtRest", "{provider: {type: rot13}}", "status.credentials.encryptionAtRest.provider.type NotSupported"}},
	})
}
