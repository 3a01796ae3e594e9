package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	. "github.com/trellis-k8s/trellis/pkg/apis/operator/validation"
)

const (
	group     = "operator"
	garden    = "garden"
	extension = "extension"
	virtual   = "spec/virtualCluster/"
	server    = virtual + "kubernetes/kubeAPIServer/"
	atServer  = "spec.virtualCluster.kubernetes.kubeAPIServer."
	gapi      = virtual + "gardener/gardenerAPIServer/"
	atGAPI    = "spec.virtualCluster.gardener.gardenerAPIServer."
	network   = "spec/runtimeCluster/networking/"
	atNetwork = "spec.runtimeCluster.networking."
	operation = "metadata/annotations"
	atOp      = "metadata.annotations[gardener.cloud/operation] "
)

func checkGarden(t *testing.T, validate func(*v1alpha1.Garden) field.ErrorList, rows []ruletest.Row) {
	t.Helper()
	ruletest.Check(t, group, garden, v1alpha1.SetDefaultsGarden, validate, rows)
}

func TestValidateGarden(t *testing.T) {
	checkGarden(t, ValidateGarden, []ruletest.Row{
		{"", "", ""},
		{"spec/dns/providers/1", "{name: primary, type: local, secretRef: {name: a}}", "spec.dns.providers[1].name Duplicate"},
		{"spec/dns/providers/0/secretRef/name", "''", "spec.dns.providers[0].secretRef.name Required"},
		{"spec/extensions/1", "{type: networking-filter}", "spec.extensions[1].type Duplicate"},
		{"spec/resources/0/resourceRef/kind", "Pod", "spec.resources[0].resourceRef NotSupported"},
		{"spec/resources/0/resourceRef/name", "A", "spec.resources[0].resourceRef.name Invalid"},
		{"spec/resources/0/name", "''", "spec.resources[0].name Required"},
		{"spec/resources/1", "{name: filter, resourceRef: {apiVersion: v1, kind: Secret, name: a}}", "spec.resources[1].name Duplicate"},
		{virtual + "etcd/main/backup/secretRef/name", "''", "spec.virtualCluster.etcd.main.backup.secretRef.name Required"},
		{virtual + "etcd/main/backup/provider", "''", "spec.virtualCluster.etcd.main.backup.provider Required"},
	})
}

func TestDomains(t *testing.T) {
	const domain, at = virtual + "dns/domains", "spec.virtualCluster.dns.domains"
	checkGarden(t, ValidateGarden, []ruletest.Row{
		{domain + "/0/provider", "", at + "[0].provider Required"},
		{domain + "/0/provider", "other", at + "[0].provider NotSupported"},
		{domain + "/0/name", "a_b", at + "[0].name Invalid"},
		{domain + "/1", "{name: garden.example.org, provider: primary}", at + "[1].name Duplicate"},
		{"spec/runtimeCluster/ingress/domains/0/provider", "", "spec.runtimeCluster.ingress.domains[0].provider Required"},
		{virtual + "gardener/gardenerDashboard/domain/provider", "other", "spec.virtualCluster.gardener.gardenerDashboard.domain.provider NotSupported"},
		{"spec/dns", "", "spec.runtimeCluster.ingress.domains[0].provider Forbidden, " +
			"spec.virtualCluster.dns.domains[0].provider Forbidden, spec.virtualCluster.gardener.gardenerDashboard.domain.provider Forbidden, " +
			"spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.provider Forbidden"},
	})
}

func TestNetworks(t *testing.T) {
	checkGarden(t, ValidateGarden, []ruletest.Row{
		{network + "nodes/0", "10.0.0.0", atNetwork + "nodes[0] Invalid"},
		{network + "nodes/0", "10.0.0.1/16", atNetwork + "nodes[0] Invalid"},
		{network + "pods/0", "10.0.128.0/17", atNetwork + "pods[0] Invalid"},
		{network + "services", "[10.2.0.0/16, 10.2.3.0/24]", atNetwork + "services[1] Invalid"},
		{network + "blockCIDRs/0", "a", atNetwork + "blockCIDRs[0] Invalid"},
		{virtual + "networking/services", "[10.1.0.0/24]", "spec.virtualCluster.networking.services[0] Invalid"},
		{virtual + "networking/services", "[100.64.0.0/13, 100.96.0.0/13]", "spec.virtualCluster.networking.services[1] Invalid"},
		{virtual + "networking/services", "[100.64.0.0/13, 'fd00::/112']", ""},
	})
}

func TestComponents(t *testing.T) {
	checkGarden(t, ValidateGarden, []ruletest.Row{
		{server + "featureGates", "{NoSuchGate: true}", atServer + "featureGates.NoSuchGate Invalid"},
		{server + "eventTTL", "48h", atServer + "eventTTL Invalid"},
		{server + "encryptionConfig/resources", "[secrets]", atServer + "encryptionConfig.resources[0] Forbidden"},
		{server + "admissionPlugins", "[{name: NoSuchPlugin}]", atServer + "admissionPlugins[0].name Invalid"},
		{server + "auditWebhook/kubeconfigSecretName", "a_b", atServer + "auditWebhook.kubeconfigSecretName Invalid"},
		{server + "authentication/webhook/cacheTTL", "-1s", atServer + "authentication.webhook.cacheTTL Invalid"},
		{server + "authentication/webhook/kubeconfigSecretName", "''", atServer + "authentication.webhook.kubeconfigSecretName Required"},
		{server + "resourcesToStoreInETCDEvents/0/resource", "''", atServer + "resourcesToStoreInETCDEvents[0].resource Required"},
		{server + "sni/domainPatterns", "[api.garden.example.org]", atServer + "sni.domainPatterns[0] Invalid"},
		{server + "sni/domainPatterns", "['*.garden.example.org']", atServer + "sni.domainPatterns[0] Invalid"},
		{server + "sni/domainPatterns", "['a.*.org']", atServer + "sni.domainPatterns[0] Invalid"},
		{server + "sni/domainPatterns", "['*.other.example.org', api.garden.example.com]", ""},
		{server + "sni/secretName", "''", atServer + "sni.secretName Invalid"},
		{virtual + "kubernetes/kubeControllerManager/featureGates", "{NoSuchGate: true}",
			"spec.virtualCluster.kubernetes.kubeControllerManager.featureGates.NoSuchGate Invalid"},
		{gapi + "encryptionConfig/resources", "[shootstates.core.gardener.cloud]", atGAPI + "encryptionConfig.resources[0] Forbidden"},
		{gapi + "encryptionConfig/resources", "[configmaps]", atGAPI + "encryptionConfig.resources[0] Invalid"},
		{gapi + "encryptionConfig/resources", "[shoots.core.gardener.cloud, shoots.core.gardener.cloud]", atGAPI + "encryptionConfig.resources[1] Duplicate"},
		{gapi + "encryptionConfig/provider/type", "secretbox", atGAPI + "encryptionConfig.provider.type Invalid"},
		{gapi + "auditWebhook/kubeconfigSecretName", "''", atGAPI + "auditWebhook.kubeconfigSecretName Required"},
		{gapi + "auditConfig/auditPolicy/configMapRef/name", "''", atGAPI + "auditConfig.auditPolicy.configMapRef.name Required"},
		{gapi + "admissionPlugins/0/kubeconfigSecretName", "''", atGAPI + "admissionPlugins[0].kubeconfigSecretName Invalid"},
		{virtual + "gardener/gardenerControllerManager/defaultProjectQuotas/0/projectSelector", "{matchExpressions: [{key: a, operator: Is}]}",
			"spec.virtualCluster.gardener.gardenerControllerManager.defaultProjectQuotas[0].projectSelector Invalid"},
		{virtual + "gardener/gardenerResourceManager/additionalTargetNamespaces/0", "a.b",
			"spec.virtualCluster.gardener.gardenerResourceManager.additionalTargetNamespaces[0] Invalid"},
	})
}

func TestValidateGardenCreation(t *testing.T) {
	checkGarden(t, ValidateGardenCreation, []ruletest.Row{
		{"", "", ""},
		{"metadata/finalizers", "[example.org/other]", ""},
		{"metadata/finalizers", "[gardener.cloud/operator, gardener.cloud/reference-protection]", "metadata.finalizers[0] Forbidden, metadata.finalizers[1] Forbidden"},
	})
}

func TestValidateGardenUpdate(t *testing.T) {
	ruletest.CheckUpdate(t, group, garden, v1alpha1.SetDefaultsGarden, ValidateGardenUpdate, []ruletest.Row{
		{"", "", ""},
		{network + "nodes", "[10.0.0.0/16, 10.3.0.0/16]", ""},
		{network + "nodes", "[10.3.0.0/16]", atNetwork + "nodes Forbidden"},
		{network + "pods", "[10.4.0.0/16]", atNetwork + "pods Forbidden"},
		{network + "services", "[10.5.0.0/16]", atNetwork + "services Forbidden"},
		{virtual + "networking/services", "[100.96.0.0/13]", "spec.virtualCluster.networking.services Forbidden"},
		{virtual + "dns/domains/0/name", "other.example.org", "spec.virtualCluster.dns.domains[0].name Invalid"},
		{"spec/runtimeCluster/ingress/domains/0/name", "other.example.org", "spec.runtimeCluster.ingress.domains[0].name Invalid"},
		{"metadata/deletionTimestamp; spec/resources", "'2026-01-01T00:00:00Z'; []", "spec Forbidden"},
		{server + "encryptionConfig/resources; " + server + "encryptionConfig/provider/type; " + gapi + "encryptionConfig/provider/type", "[]; secretbox; secretbox",
			atServer + "encryptionConfig.provider.type Forbidden"},
		{server + "encryptionConfig/resources", "[configmaps, services]", ""},
	})
}

func TestOperations(t *testing.T) {
	const rotation, kubernetes = "status/credentials/rotation", virtual + "kubernetes/version"
	one := func(operations string) string { return "{gardener.cloud/operation: '" + operations + "'}" }
	var rows []ruletest.Row
	for _, test := range []struct{ operation, rotation, version, want string }{
		{operation: "reconcile"},
		{operation: "maintain", want: atOp + "NotSupported"},
		{operation: "rotate-ca-start"},
		{operation: "rotate-ca-start", rotation: "{certificateAuthorities: {phase: Prepared}}", want: atOp + "Forbidden"},
		{operation: "rotate-ca-start", rotation: "{certificateAuthorities: {phase: Completed}}"},
		{operation: "rotate-ca-complete", want: atOp + "Forbidden"},
		{operation: "rotate-ca-complete", rotation: "{certificateAuthorities: {phase: Prepared}}"},
		{operation: "rotate-serviceaccount-key-start"},
		{operation: "rotate-serviceaccount-key-complete", rotation: "{serviceAccountKey: {phase: Preparing}}", want: atOp + "Forbidden"},
		{operation: "rotate-workload-identity-key-start", rotation: "{workloadIdentityKey: {phase: Completing}}", want: atOp + "Forbidden"},
		{operation: "rotate-workload-identity-key-complete", rotation: "{workloadIdentityKey: {phase: Prepared}}"},
		{operation: "rotate-observability-credentials"},
		{operation: "rotate-etcd-encryption-key"},
		{operation: "rotate-etcd-encryption-key-start", want: atOp + "Forbidden"},
		{operation: "rotate-etcd-encryption-key-start", version: "1.33.4"},
		{operation: "rotate-etcd-encryption-key-complete", version: "1.33.4", want: atOp + "Forbidden"},
		{operation: "rotate-credentials-start"},
		{operation: "rotate-credentials-start", rotation: "{etcdEncryptionKey: {phase: Preparing}}", want: atOp + "Forbidden"},
		{operation: "rotate-credentials-complete", want: atOp + "Forbidden"},
		{operation: "rotate-credentials-complete",
			rotation: "{certificateAuthorities: {phase: Prepared}, serviceAccountKey: {phase: Prepared}, workloadIdentityKey: {phase: Prepared}}"},
		{operation: "rotate-credentials-complete", version: "1.33.4", want: atOp + "Forbidden",
			rotation: "{certificateAuthorities: {phase: Prepared}, serviceAccountKey: {phase: Prepared}, workloadIdentityKey: {phase: Prepared}}"},
		{operation: "rotate-ca-start;rotate-serviceaccount-key-start;reconcile"},
		{operation: "rotate-ca-start;rotate-credentials-start", want: atOp + "Forbidden"},
		{operation: "rotate-etcd-encryption-key;rotate-etcd-encryption-key-start", version: "1.33.4", want: atOp + "Forbidden"},
	} {
		rows = append(rows, ruletest.Row{
			operation + unlessEmpty(test.rotation, "; "+rotation) + unlessEmpty(test.version, "; "+kubernetes),
			one(test.operation) + unlessEmpty(test.rotation, "; "+test.rotation) + unlessEmpty(test.version, "; "+test.version), test.want,
		})
	}
	rows = append(rows, ruletest.Row{operation + "; metadata/deletionTimestamp", one("rotate-ca-start") + "; '2026-01-01T00:00:00Z'", atOp + "Forbidden"})
	checkGarden(t, ValidateGarden, rows)
}

// unlessEmpty returns a text if a condition is not empty.
func unlessEmpty(condition, text string) string {
	if condition == "" {
		return ""
	}
	return text
}

// TestPendingOperation checks that an operation that is pending does not prevent other changes.
func TestPendingOperation(t *testing.T) {
	object := ruletest.Example(t, group, garden, 0)
	ruletest.Change(t, object, "metadata/annotations", "{gardener.cloud/operation: rotate-ca-complete}")
	pending := ruletest.Decode(t, object, v1alpha1.SetDefaultsGarden)
	ruletest.Compare(t, ValidateGardenUpdate(pending, pending), "")
}

// TestEncryptionDuringRotation checks that what is encrypted stays while the key is rotated.
func TestEncryptionDuringRotation(t *testing.T) {
	object := ruletest.Example(t, group, garden, 0)
	ruletest.Change(t, object, "status/credentials/rotation/etcdEncryptionKey", "{phase: Preparing}")
	before := ruletest.Decode(t, object, v1alpha1.SetDefaultsGarden)
	ruletest.Change(t, object, server+"encryptionConfig/resources", "[]")
	ruletest.Compare(t, ValidateGardenUpdate(ruletest.Decode(t, object, v1alpha1.SetDefaultsGarden), before), atServer+"encryptionConfig Forbidden")
}

func TestValidateExtension(t *testing.T) {
	const deployment, at, oci = "spec/deployment/", "spec.deployment.", "spec/deployment/extension/helm/ociRepository"
	ruletest.Check(t, group, extension, v1alpha1.SetDefaultsExtension, ValidateExtension, []ruletest.Row{
		{"", "", ""},
		{"spec/deployment", "", "spec.deployment Required"},
		{deployment + "extension; " + deployment + "admission", "; ", "spec.deployment Required"},
		{"spec/resources/0/kind", "Pod", "spec.resources[0].kind NotSupported"},
		{"spec/resources/1/clusterCompatibility", "[seed]", "spec.resources[1].autoEnable[0] Forbidden"},
		{"spec/resources/1/clusterCompatibility", "[garden, moon]", "spec.resources[1].clusterCompatibility[1] NotSupported"},
		{oci, "", at + "extension.helm.ociRepository Required"},
		{oci, "{repository: a}", at + "extension.helm.ociRepository.tag Required"},
		{deployment + "admission/runtimeCluster; " + deployment + "admission/virtualCluster", "; ", at + "admission Required"},
		{deployment + "admission/virtualCluster/helm/ociRepository", "{}", at + "admission.virtualCluster.helm.ociRepository.repository Required"},
		{deployment + "resources/0/name", "a-b", at + "admission.values Invalid, " + at + "resources[0].name Invalid"},
		{deployment + "resources/0/resourceRef/kind", "Pod", at + "resources[0].resourceRef NotSupported"},
		{deployment + "extension/values/a", "'{{ .resources.other.data.a }}'", at + "extension.values Invalid"},
		{deployment + "extension/runtimeClusterValues/a", "'{{ .Values.a }}'", at + "extension.runtimeClusterValues Invalid"},
		{deployment + "extension/policy", "Sometimes", at + "extension.policy NotSupported"},
		{deployment + "extension/seedSelector", "{matchExpressions: [{key: a, operator: Is}]}", at + "extension.seedSelector Invalid"},
	})
	ruletest.CheckUpdate(t, group, extension, v1alpha1.SetDefaultsExtension, ValidateExtensionUpdate, []ruletest.Row{
		{"", "", ""},
		{"spec/resources/0/primary", "false", "spec.resources[0].primary Invalid"},
		{"metadata/deletionTimestamp; spec/resources", "'2026-01-01T00:00:00Z'; []", "spec Forbidden"},
	})
}
