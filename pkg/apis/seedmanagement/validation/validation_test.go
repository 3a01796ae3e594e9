package validation_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	. "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/validation"
)

// below prefixes the paths of the rows, and of the fields that they report, with path.
func below(path string, rows []Row) []Row {
	var moved []Row
	for _, row := range rows {
		var paths, fields []string
		for one := range strings.SplitSeq(row[0], "; ") {
			paths = append(paths, path+"/"+one)
		}
		for one := range strings.SplitSeq(row[2], ", ") {
			if one != "" {
				one = strings.ReplaceAll(path, "/", ".") + "." + one
			}
			fields = append(fields, one)
		}
		moved = append(moved, Row{strings.Join(paths, "; "), row[1], strings.Join(fields, ", ")})
	}
	return moved
}

// ofDeployments are the rules for the deployment of a gardenlet.
var ofDeployments = []Row{
	{"replicaCount", "-1", "replicaCount Invalid"},
	{"replicaCount", "0", ""},
	{"revisionHistoryLimit", "-1", "revisionHistoryLimit Invalid"},
	{"serviceAccountName", "a_b", "serviceAccountName Invalid"},
	{"podLabels", "{a: 'b c'}", "podLabels Invalid"},
	{"podAnnotations", "{a b: c}", "podAnnotations Invalid"},
	{"image", "", ""},
	{"image", "{ref: a}", ""},
	{"image", "{ref: ''}", "image.ref Invalid"},
	{"image", "{repository: ''}", "image.repository Invalid"},
	{"image", "{tag: ''}", "image.tag Invalid"},
	{"image", "{ref: a, repository: b, tag: c}", "image.repository Forbidden, image.tag Forbidden"},
	{"image/pullPolicy", "Sometimes", "image.pullPolicy NotSupported"},
}

// ofConfigurations are the rules for the configuration of a gardenlet.
var ofConfigurations = []Row{
	{"config", "", ""},
	{"config/apiVersion", "v1", "config.apiVersion NotSupported"},
	{"config/apiVersion", "", "config.apiVersion Required"},
	{"config/kind", "Other", "config.kind NotSupported"},
	{"config/kind", "", "config.kind Required"},
	{"config/resources", "5", "config Invalid"},
	{"config/logLevel", "debug", ""},
	{"config/logLevel", "warn", "config.logLevel NotSupported"},
	{"config/logFormat", "yaml", "config.logFormat NotSupported"},
	{"config/gardenClientConnection/kubeconfig", "a", "config.gardenClientConnection.kubeconfig Forbidden"},
	{"config/gardenClientConnection", "{bootstrapKubeconfig: {name: a}, kubeconfigSecret: {name: b}}", ""},
	{"config/gardenClientConnection/kubeconfigValidity", "{validity: 9m}", "config.gardenClientConnection.kubeconfigValidity.validity Invalid"},
	{"config/gardenClientConnection/kubeconfigValidity", "{validity: 10m}", ""},
	{"config/gardenClientConnection/kubeconfigValidity", "{autoRotationJitterPercentageMin: 0}",
		"config.gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin Invalid"},
	{"config/gardenClientConnection/kubeconfigValidity", "{autoRotationJitterPercentageMin: 90}",
		"config.gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin Invalid"},
	{"config/gardenClientConnection/kubeconfigValidity", "{autoRotationJitterPercentageMax: 101}",
		"config.gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMax Invalid"},
	{"config/resources", "{capacity: {shoots: 5}, reserved: {shoots: 5}}", ""},
	{"config/resources", "{capacity: {shoots: 5}, reserved: {shoots: 6}}", "config.resources.reserved[shoots] Invalid"},
	{"config/resources", "{capacity: {shoots: 5}, reserved: {cpu: 1}}", "config.resources.reserved[cpu] Invalid"},
	{"config/controllers", "{backupEntry: {deletionGracePeriodHours: -1}}", "config.controllers.backupEntry.deletionGracePeriodHours Invalid"},
	{"config/controllers", "{backupEntry: {deletionGracePeriodShootPurposes: [testing]}}",
		"config.controllers.backupEntry.deletionGracePeriodShootPurposes Forbidden"},
	{"config/controllers", "{backupEntry: {deletionGracePeriodHours: 1, deletionGracePeriodShootPurposes: [testing, fun]}}",
		"config.controllers.backupEntry.deletionGracePeriodShootPurposes[1] NotSupported"},
	{"config/controllers", "{shoot: {dnsEntryTTLSeconds: 29}}", "config.controllers.shoot.dnsEntryTTLSeconds Invalid"},
	{"config/controllers", "{shoot: {dnsEntryTTLSeconds: 600}}", ""},
	{"config/controllers", "{shoot: {dnsEntryTTLSeconds: 601}}", "config.controllers.shoot.dnsEntryTTLSeconds Invalid"},
	{"config/controllers", "{shoot: {concurrentSyncs: -1}}", "config.controllers.shoot.concurrentSyncs Invalid"},
	{"config/controllers", "{shootStatus: {concurrentSyncs: -1}}", "config.controllers.shootStatus.concurrentSyncs Invalid"},
	{"config/controllers", "{shoot: {concurrentSyncs: 0}}", ""},
	{"config/leaderElection", "{leaseDuration: 5s}", "config.leaderElection.leaseDuration Invalid"},
	{"config/leaderElection", "{retryPeriod: -1s}", "config.leaderElection.retryPeriod Invalid"},
	{"config/leaderElection", "{leaderElect: false, retryPeriod: -1s}", ""},
	{"config/exposureClassHandlers", "[{name: a_b}]", "config.exposureClassHandlers[0].name Invalid"},
	{"config/seedConfig", "{metadata: {name: a}}", "config.seedConfig.metadata.name Forbidden"},
	{"config/seedConfig", "{metadata: {labels: {a: 'b c'}}}", "config.seedConfig.metadata.labels Invalid"},
	{"config/seedConfig", "{spec: {unknown: a}}", "config.seedConfig Invalid"},
	{"config/seedConfig", "{spec: 5}", "config.seedConfig Invalid"},
	{"config/seedConfig", "{spec: {provider: {zones: [a, a]}}}", "config.seedConfig.spec.provider.zones[1] Duplicate"},
	{"config/seedConfig", "", ""},
}

func TestValidateManagedSeed(t *testing.T) {
	const connection = "spec/gardenlet/config/gardenClientConnection"
	rows := []Row{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"metadata/namespace", "other", "metadata.namespace Invalid"},
		{"metadata/namespace", "", "metadata.namespace Required"},
		{"spec/shoot", "", "spec.shoot Required"},
		{"spec/shoot/name", "''", "spec.shoot.name Required"},
		{"spec/gardenlet/bootstrap", "Magic", "spec.gardenlet.bootstrap NotSupported"},
		{"spec/gardenlet/deployment", "", ""},
		{"spec/gardenlet/config", "[1]", "spec.gardenlet.config Invalid"},
		{"spec/gardenlet/bootstrap; " + connection + "/kubeconfig", "ServiceAccount; a", "spec.gardenlet.config.gardenClientConnection.kubeconfig Forbidden"},
		{"spec/gardenlet/bootstrap", "None", ""},
		{"spec/gardenlet/bootstrap; spec/gardenlet/mergeWithParent", "None; false", "spec.gardenlet.config.gardenClientConnection.kubeconfig Required"},
		{"spec/gardenlet/bootstrap; spec/gardenlet/mergeWithParent; " + connection + "/kubeconfig", "None; false; a", ""},
		{"spec/gardenlet/bootstrap; " + connection, "None; {bootstrapKubeconfig: {name: a}, kubeconfigSecret: {name: a}}",
			"spec.gardenlet.config.gardenClientConnection.bootstrapKubeconfig Forbidden, spec.gardenlet.config.gardenClientConnection.kubeconfigSecret Forbidden"},
	}
	rows = slices.Concat(rows, below("spec/gardenlet/deployment", ofDeployments), below("spec/gardenlet", ofConfigurations))
	Check(t, "seedmanagement", "managedseed", v1alpha1.SetDefaultsManagedSeed, ValidateManagedSeed, rows)
	CheckUpdate(t, "seedmanagement", "managedseed", v1alpha1.SetDefaultsManagedSeed, ValidateManagedSeedUpdate, []Row{
		{"", "", ""},
		{"spec/shoot/name", "other", "spec.shoot Invalid"},
		{"spec/gardenlet/bootstrap", "ServiceAccount", "spec.gardenlet.bootstrap Invalid"},
		{"spec/gardenlet/mergeWithParent", "false", "spec.gardenlet.mergeWithParent Invalid"},
		{"metadata/annotations", "{gardener.cloud/operation: renew-kubeconfig}", ""},
		{"metadata/annotations", "{gardener.cloud/operation: dance}", "metadata.annotations[gardener.cloud/operation] NotSupported"},
		{"spec/gardenlet/deployment/replicaCount", "1", ""},
		{"spec/gardenlet/deployment/replicaCount", "-1", "spec.gardenlet.deployment.replicaCount Invalid"},
	})
}

func TestValidateGardenlet(t *testing.T) {
	rows := []Row{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"metadata/namespace", "other", "metadata.namespace Invalid"},
		{"spec/kubeconfigSecretRef", "", ""},
		{"spec/kubeconfigSecretRef/name", "''", "spec.kubeconfigSecretRef.name Required"},
		{"spec/deployment/helm/ociRepository", "{}", "spec.deployment.helm.ociRepository.repository Required"},
		{"spec/deployment/helm/ociRepository/tag", "'1'", "spec.deployment.helm.ociRepository.tag Forbidden"},
	}
	rows = slices.Concat(rows, below("spec/deployment", ofDeployments), below("spec", ofConfigurations))
	Check(t, "seedmanagement", "gardenlet", v1alpha1.SetDefaultsGardenlet, ValidateGardenlet, rows)
	CheckUpdate(t, "seedmanagement", "gardenlet", v1alpha1.SetDefaultsGardenlet, ValidateGardenletUpdate, []Row{
		{"", "", ""},
		{"spec/deployment/helm/ociRepository/ref", "other:1", ""},
		{"metadata/annotations", "{gardener.cloud/operation: force-redeploy}", ""},
		{"metadata/annotations", "{gardener.cloud/operation: dance}", "metadata.annotations[gardener.cloud/operation] NotSupported"},
		{"spec/deployment/helm/ociRepository", "{}", "spec.deployment.helm.ociRepository.repository Required"},
	})
}

func TestValidateManagedSeedSet(t *testing.T) {
	const gardenlet, shoot = "spec/template/spec/gardenlet", "spec/shootTemplate"
	rows := []Row{
		{"", "", ""},
		{"metadata/name", "a_b", "metadata.name Invalid"},
		{"metadata/namespace", "other", "metadata.namespace Invalid"},
		{"spec/replicas", "-1", "spec.replicas Invalid"},
		{"spec/replicas", "0", ""},
		{"spec/revisionHistoryLimit", "-1", "spec.revisionHistoryLimit Invalid"},
		{"spec/selector", "{}", "spec.selector Invalid"},
		{"spec/selector/matchExpressions", "[{key: a, operator: Like}]", "spec.selector Invalid"},
		{"spec/template/metadata/labels", "{a: b}", "spec.template.metadata.labels Invalid"},
		{shoot + "/metadata/labels", "{a: b}", "spec.shootTemplate.metadata.labels Invalid"},
		{gardenlet + "/config/seedConfig/metadata/labels", "{a: b}", "spec.template.spec.gardenlet.config.seedConfig.metadata.labels Invalid"},
		{"spec/template/metadata/labels", "{'': b, example.org/set: seeds}", "spec.template.metadata.labels Invalid"},
		{shoot + "/metadata/annotations", "{'a b': c}", "spec.shootTemplate.metadata.annotations Invalid"},
		{gardenlet + "/config/seedConfig", "", "spec.template.spec.gardenlet.config.seedConfig Required"},
		{gardenlet + "/config/seedConfig", "{a: b}", "spec.template.spec.gardenlet.config.seedConfig Invalid"},
		{gardenlet + "/config", "[1]", "spec.template.spec.gardenlet.config Invalid"},
		{gardenlet + "/bootstrap", "Magic", "spec.template.spec.gardenlet.bootstrap NotSupported"},
		{"spec/template/spec/shoot", "{name: a}", "spec.template.spec.shoot Forbidden"},
		{shoot + "/spec/region", "''", "spec.shootTemplate.spec.region Required"},
		{"spec/updateStrategy/type", "Recreate", "spec.updateStrategy.type NotSupported"},
		{"spec/updateStrategy/rollingUpdate/partition", "-1", "spec.updateStrategy.rollingUpdate.partition Invalid"},
		{"spec/updateStrategy", "", ""},
	}
	Check(t, "seedmanagement", "managedseedset", v1alpha1.SetDefaultsManagedSeedSet, ValidateManagedSeedSet, rows)
	CheckUpdate(t, "seedmanagement", "managedseedset", v1alpha1.SetDefaultsManagedSeedSet, ValidateManagedSeedSetUpdate, []Row{
		{"", "", ""},
		{"spec/replicas", "3", ""},
		{"spec/replicas", "-3", "spec.replicas Invalid"},
		{"spec/selector/matchLabels", "{}", "spec.selector Invalid"},
		{"spec/revisionHistoryLimit", "3", "spec.revisionHistoryLimit Invalid"},
		{shoot + "/spec/region", "other", "spec.shootTemplate.spec.region Invalid"},
		{shoot + "/spec/provider/type", "other", "spec.shootTemplate.spec.provider.type Invalid"},
		{shoot + "/spec/networking/type", "other", "spec.shootTemplate.spec.networking.type Invalid"},
		{shoot + "/spec/networking/nodes", "10.99.0.0/16", "spec.shootTemplate.spec.networking.nodes Invalid"},
		{shoot + "/spec/schedulerName", "other", "spec.shootTemplate.spec.schedulerName Invalid"},
		{shoot + "/spec/controlPlane/zones", "[a]", "spec.shootTemplate.spec.controlPlane.zones Invalid"},
		{shoot + "/spec/kubernetes/version", "1.32.0", "spec.shootTemplate.spec.kubernetes.version Forbidden, spec.shootTemplate.spec.provider.workers[0].kubernetes.version Forbidden"},
		{shoot + "/spec/kubernetes/version", "'1.32'", "spec.shootTemplate.spec.kubernetes.version Forbidden, spec.shootTemplate.spec.provider.workers[0].kubernetes.version Forbidden"},
		{shoot + "/spec/purpose", "testing", ""},
		{shoot + "/spec/exposureClassName", "other", ""},
		{gardenlet + "/config/seedConfig/spec", "{networks: {pods: 10.98.0.0/16}}", "spec.template.spec.gardenlet.config.seedConfig.spec.networks.pods Invalid"},
		{gardenlet + "/bootstrap", "ServiceAccount", "spec.template.spec.gardenlet.bootstrap Invalid"},
		{gardenlet + "/mergeWithParent", "false", "spec.template.spec.gardenlet.mergeWithParent Invalid"},
	})
}

// TestPendingOperations tests that an operation that is not executed yet cannot be replaced by another one.
func TestPendingOperations(t *testing.T) {
	const refused = "metadata.annotations[gardener.cloud/operation] Forbidden"
	seed := func(operation string) *v1alpha1.ManagedSeed {
		one := Decode(t, Example(t, "seedmanagement", "managedseed", 0), v1alpha1.SetDefaultsManagedSeed)
		one.Annotations, one.ResourceVersion = map[string]string{"gardener.cloud/operation": operation}, "1"
		return one
	}
	gardenlet := func(operation string) *v1alpha1.Gardenlet {
		one := Decode(t, Example(t, "seedmanagement", "gardenlet", 0), v1alpha1.SetDefaultsGardenlet)
		one.Annotations, one.ResourceVersion = map[string]string{"gardener.cloud/operation": operation}, "1"
		return one
	}
	for replacement, want := range map[string]string{"reconcile": refused, "renew-kubeconfig": "", "": ""} {
		Compare(t, ValidateManagedSeedUpdate(seed(replacement), seed("renew-kubeconfig")), want)
		Compare(t, ValidateGardenletUpdate(gardenlet(replacement), gardenlet("renew-kubeconfig")), want)
	}
}

// TestChangesOfSeedConfigs tests that the Seed in a configuration has the same immutable fields as a Seed.
func TestChangesOfSeedConfigs(t *testing.T) {
	const before = "{networks: {pods: 10.0.0.0/16, services: 10.1.0.0/16, nodes: 10.2.0.0/16}, ingress: {domain: a.example.org, controller: {kind: nginx}}, " +
		"dns: {provider: {type: a, credentialsRef: {apiVersion: v1, kind: Secret, name: a, namespace: garden}}}}"
	for _, row := range []Row{
		{"networks/pods", "10.9.0.0/16", "networks.pods Invalid"},
		{"networks/services", "10.9.0.0/16", "networks.services Invalid"},
		{"networks/nodes", "10.9.0.0/16", "networks.nodes Invalid"},
		{"ingress/domain", "b.example.org", "ingress.domain Invalid"},
		{"settings", "{scheduling: {visible: false}}", ""},
	} {
		at := func(path, prefix string) string {
			if path == "" {
				return ""
			}
			return prefix + path
		}
		seeds, gardenlets := [2]*v1alpha1.ManagedSeed{}, [2]*v1alpha1.Gardenlet{}
		for i := range 2 {
			seed, gardenlet := Example(t, "seedmanagement", "managedseed", 0), Example(t, "seedmanagement", "gardenlet", 0)
			Change(t, seed, "metadata/resourceVersion; spec/gardenlet/config/seedConfig", "'1'; {spec: "+before+"}")
			Change(t, gardenlet, "metadata/resourceVersion; spec/config/seedConfig", "'1'; {spec: "+before+"}")
			if i == 1 {
				Change(t, seed, "spec/gardenlet/config/seedConfig/spec/"+row[0], row[1])
				Change(t, gardenlet, "spec/config/seedConfig/spec/"+row[0], row[1])
			}
			seeds[i], gardenlets[i] = Decode(t, seed, v1alpha1.SetDefaultsManagedSeed), Decode(t, gardenlet, v1alpha1.SetDefaultsGardenlet)
		}
		Compare(t, ValidateManagedSeedUpdate(seeds[1], seeds[0]), at(row[2], "spec.gardenlet.config.seedConfig.spec."))
		Compare(t, ValidateGardenletUpdate(gardenlets[1], gardenlets[0]), at(row[2], "spec.config.seedConfig.spec."))
	}
}

// TestValidateManagedSeedSetWithoutWorkers accepts further errors, because a Shoot without nodes may have its own.
func TestValidateManagedSeedSetWithoutWorkers(t *testing.T) {
	object := Example(t, "seedmanagement", "managedseedset", 0)
	Change(t, object, "spec/shootTemplate/spec/provider/workers; spec/shootTemplate/spec/credentialsBindingName; spec/shootTemplate/spec/networking", "[]; ; ")
	set := Decode(t, object, v1alpha1.SetDefaultsManagedSeedSet)
	Compare(t, ValidateManagedSeedSet(set), "spec.shootTemplate.spec.provider.workers Required")
}

func TestValidateManagedSeedSetStatusUpdate(t *testing.T) {
	const status = "{replicas: 3, readyReplicas: 3, nextReplicaNumber: 4, currentReplicas: 1, updatedReplicas: 2, collisionCount: 1, " +
		"pendingReplica: {name: seeds-3, reason: SeedNotReady, since: '2026-01-02T03:04:05Z', retries: 1}}"
	for _, row := range []Row{
		{"", "", ""},
		{"status/replicas", "-1", "status.currentReplicas Invalid, status.readyReplicas Invalid, status.replicas Invalid, status.updatedReplicas Invalid"},
		{"status/readyReplicas", "4", "status.readyReplicas Invalid"},
		{"status/readyReplicas", "-1", "status.readyReplicas Invalid"},
		{"status/currentReplicas", "4", "status.currentReplicas Invalid"},
		{"status/updatedReplicas", "4", "status.updatedReplicas Invalid"},
		{"status/nextReplicaNumber", "5", ""},
		{"status/nextReplicaNumber", "3", "status.nextReplicaNumber Invalid"},
		{"status/collisionCount", "0", "status.collisionCount Invalid"},
		{"status/collisionCount", "", "status.collisionCount Invalid"},
		{"status/pendingReplica", "", ""},
		{"status/pendingReplica/name", "other-3", "status.pendingReplica.name Invalid"},
		{"status/pendingReplica/name", "seeds-a", "status.pendingReplica.name Invalid"},
		{"status/pendingReplica/reason", "Boredom", "status.pendingReplica.reason NotSupported"},
		{"status/pendingReplica/reason", "''", "status.pendingReplica.reason Required"},
		{"status/pendingReplica/since", "", ""},
		{"status/observedGeneration", "-1", "status.observedGeneration Invalid"},
		{"status/pendingReplica/retries", "-1", "status.pendingReplica.retries Invalid"},
	} {
		t.Run(row[0]+"="+row[1], func(t *testing.T) {
			before, now := Example(t, "seedmanagement", "managedseedset", 0), Example(t, "seedmanagement", "managedseedset", 0)
			Change(t, before, "status", status)
			Change(t, now, "status", status)
			Change(t, now, row[0], row[1])
			Compare(t, ValidateManagedSeedSetStatusUpdate(Decode(t, now, NoDefaults[v1alpha1.ManagedSeedSet]), Decode(t, before, NoDefaults[v1alpha1.ManagedSeedSet])), row[2])
		})
	}
}
