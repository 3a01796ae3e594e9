package validation_test

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
)

// noDefaults is the defaulting function of kinds without defaults.
func noDefaults[T any](object *T) { ruletest.NoDefaults(object) }

const (
	asShoot  = "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: a, namespace: garden-dev}"
	isSecret = "{apiVersion: v1, kind: Secret, name: a, namespace: garden}"
)

func TestValidateBackupBucket(t *testing.T) {
	checkRules(t, "backupbucket", 0, noDefaults, ValidateBackupBucket, []rule{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"metadata/namespace", "a", "metadata.namespace Forbidden"},
		{"spec/provider/type", "''", "spec.provider.type Required"},
		{"spec/provider/region", "''", "spec.provider.region Required"},
		{"spec/credentialsRef", "", "spec.credentialsRef Required"},
		{"spec/credentialsRef/kind", "ConfigMap", "spec.credentialsRef NotSupported"},
		{"spec/credentialsRef/kind", "''", "spec.credentialsRef.kind Required"},
		{"spec/credentialsRef/apiVersion", "''", "spec.credentialsRef.apiVersion Required"},
		{"spec/credentialsRef/name", "", "spec.credentialsRef.name Required"},
		{"spec/credentialsRef/namespace", "", "spec.credentialsRef.namespace Required"},
		{"spec/credentialsRef/namespace", "a.b", "spec.credentialsRef.namespace Invalid"},
		{"spec/credentialsRef", "{apiVersion: core.gardener.cloud/v1beta1, kind: InternalSecret, name: a, namespace: garden}", ""},
		{"spec/credentialsRef", "{apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: a, namespace: garden}", ""},
		{"spec/seedName", "", "spec.seedName Required"},
		{"spec/seedName", "''", "spec.seedName Invalid"},
		{"spec/shootRef", asShoot, "spec.shootRef Forbidden"},
		{"spec/seedName; spec/shootRef", "; " + asShoot, ""},
		{"spec/seedName; spec/shootRef", "; " + isSecret, "spec.shootRef NotSupported"},
		{"spec/seedName; spec/shootRef; spec/shootRef/name", "; " + asShoot + "; ''", "spec.shootRef.name Required"},
		{"spec/seedName; spec/shootRef; spec/shootRef/namespace", "; " + asShoot + "; ''", "spec.shootRef.namespace Required"},
	})
}

func TestValidateBackupBucketUpdate(t *testing.T) {
	checkUpdates(t, "backupbucket", 0, noDefaults, ValidateBackupBucketUpdate, []rule{
		{"", "", ""},
		{"spec/provider/type", "other", "spec.provider Invalid"},
		{"spec/provider/region", "other", "spec.provider Invalid"},
		{"spec/seedName", "other", "spec.seedName Invalid"},
		{"spec/seedName; spec/shootRef", "; " + asShoot, "spec.seedName Invalid, spec.shootRef Invalid"},
		{"spec/credentialsRef/name", "other", ""},
		{"spec/credentialsRef/name", "''", "spec.credentialsRef.name Required"},
	})
}

func TestValidateBackupEntry(t *testing.T) {
	checkRules(t, "backupentry", 0, noDefaults, ValidateBackupEntry, []rule{
		{"", "", ""},
		{"metadata/name", "Source-shoot--A--b", ""},
		{"metadata/namespace", "", "metadata.namespace Required"},
		{"spec/bucketName", "''", "spec.bucketName Required"},
		{"spec/seedName", "", "spec.seedName Required"},
		{"spec/seedName", "''", "spec.seedName Invalid"},
		{"spec/shootRef", asShoot, "spec.shootRef Forbidden"},
		{"spec/seedName; spec/shootRef", "; " + asShoot, ""},
		{"spec/seedName; spec/shootRef; spec/shootRef/namespace", "; " + asShoot + "; garden-other", "spec.shootRef.namespace Invalid"},
		{"spec/seedName; spec/shootRef; spec/shootRef/name", "; " + asShoot + "; ''", "spec.shootRef.name Required"},
	})
}

func TestValidateBackupEntryUpdate(t *testing.T) {
	checkUpdates(t, "backupentry", 0, noDefaults, ValidateBackupEntryUpdate, []rule{
		{"", "", ""},
		{"spec/seedName", "other", ""},
		{"spec/bucketName", "''", "spec.bucketName Required"},
	})
}

func TestValidateShootState(t *testing.T) {
	checkRules(t, "shootstate", 0, noDefaults, ValidateShootState, []rule{
		{"spec/extensions/0/resources/0/resourceRef/kind", "Pod", "spec.extensions[0].resources[0].resourceRef NotSupported"},
		{"spec/extensions/0/resources/1", "{name: unit, resourceRef: {apiVersion: v1, kind: Secret, name: a}}", "spec.extensions[0].resources[1].name Duplicate"},
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"spec/gardener/0/name", "''", "spec.gardener[0].name Required"},
		{"spec/gardener/0/type", "''", "spec.gardener[0].type Required"},
		{"spec/gardener/0/type", "machine-state", ""},
		{"spec/gardener/0/type", "other", "spec.gardener[0].type NotSupported"},
		{"spec/extensions/0/kind", "''", "spec.extensions[0].kind Required"},
		{"spec/extensions/0/purpose", "''", "spec.extensions[0].purpose Invalid"},
		{"spec/extensions/0/purpose", "", ""},
		{"spec/extensions/0/resources/0/name", "''", "spec.extensions[0].resources[0].name Required"},
		{"spec/extensions/0/resources/0/resourceRef/kind", "''", "spec.extensions[0].resources[0].resourceRef.kind Required"},
		{"spec/extensions/0/resources/0/resourceRef/name", "''", "spec.extensions[0].resources[0].resourceRef.name Required"},
		{"spec/resources/0/kind", "Pod", "spec.resources[0] NotSupported"},
		{"spec/resources/0/kind", "ConfigMap", ""},
		{"spec/resources/0/kind", "''", "spec.resources[0].kind Required"},
		{"spec/resources/0/name", "''", "spec.resources[0].name Required"},
	})
	checkUpdates(t, "shootstate", 0, noDefaults, ValidateShootStateUpdate, []rule{
		{"", "", ""},
		{"spec/gardener/0/type", "other", "spec.gardener[0].type NotSupported"},
	})
}

func TestValidateExposureClass(t *testing.T) {
	checkRules(t, "exposureclass", 0, noDefaults, ValidateExposureClass, []rule{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"handler", "''", "handler Invalid"},
		{"handler", "a.b", "handler Invalid"},
		{"handler", "abcdefghijabcdefghijabcdefghijabcd", ""},
		{"handler", "abcdefghijabcdefghijabcdefghijabcde", "handler Invalid"},
		{"scheduling", "", ""},
		{"scheduling/seedSelector/matchExpressions", "[{key: a, operator: Like}]", "scheduling.seedSelector Invalid"},
		{"scheduling/tolerations/0/key", "a b", "scheduling.tolerations[0].key Invalid"},
		{"scheduling/tolerations/1", "{key: example.org/internet}", "scheduling.tolerations[1] Duplicate"},
	})
	checkUpdates(t, "exposureclass", 0, noDefaults, ValidateExposureClassUpdate, []rule{
		{"", "", ""},
		{"handler", "other", "handler Invalid"},
		{"scheduling", "", "scheduling Invalid"},
		{"scheduling/tolerations/1", "{key: other}", "scheduling Invalid"},
		{"handler", "a.b", "handler Invalid"},
	})
}

func TestValidateQuota(t *testing.T) {
	checkRules(t, "quota", 0, noDefaults, ValidateQuota, []rule{
		{"", "", ""},
		{"metadata/name", "a_b", "metadata.name Invalid"},
		{"spec/scope", "{apiVersion: v1, kind: Secret}", ""},
		{"spec/scope", "{apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity}", ""},
		{"spec/scope", "{apiVersion: v1, kind: Pod}", "spec.scope NotSupported"},
		{"spec/scope", "{kind: Project}", "spec.scope.apiVersion Required"},
		{"spec/scope", "{apiVersion: v1}", "spec.scope.kind Required"},
		{"spec/clusterLifetimeDays", "0", "spec.clusterLifetimeDays Invalid"},
		{"spec/clusterLifetimeDays", "", ""},
		{"spec/metrics/pods", "'1'", "spec.metrics[pods] Invalid"},
		{"spec/metrics/cpu", "'-1'", "spec.metrics[cpu] Invalid"},
	})
	checkUpdates(t, "quota", 0, noDefaults, ValidateQuotaUpdate, []rule{
		{"", "", ""},
		{"spec/scope", "{apiVersion: v1, kind: Secret}", "spec.scope Invalid"},
		{"spec/metrics/cpu", "'1'", ""},
		{"spec/metrics/cpu", "'-1'", "spec.metrics[cpu] Invalid"},
	})
}

func TestValidateSecretBinding(t *testing.T) {
	checkRules(t, "secretbinding", 0, v1beta1.SetDefaultsSecretBinding, ValidateSecretBinding, []rule{
		{"", "", ""},
		{"metadata/name", "a_b", "metadata.name Invalid"},
		{"secretRef/name", "", "secretRef.name Required"},
		{"secretRef/name", "a_b", "secretRef.name Invalid"},
		{"secretRef/namespace", "", ""},
		{"secretRef/namespace", "a.b", "secretRef.namespace Invalid"},
		{"quotas/0/name", "", "quotas[0].name Required"},
		{"quotas/0/namespace", "", ""},
		{"quotas/0/namespace", "a.b", "quotas[0].namespace Invalid"},
		{"provider", "", "provider Required"},
		{"provider/type", "''", "provider.type Required"},
		{"provider/type", "'local,other'", ""},
	})
	checkUpdates(t, "secretbinding", 0, v1beta1.SetDefaultsSecretBinding, ValidateSecretBindingUpdate, []rule{
		{"", "", ""},
		{"secretRef/name", "other", "secretRef Invalid"},
		{"quotas/0/name", "other", "quotas Invalid"},
		{"provider/type", "other", "provider Invalid"},
		{"provider", "", "provider Invalid"},
		{"provider/type", "''", "provider Invalid, provider.type Required"},
	})
	old := decode(t, example(t, "secretbinding", 0), v1beta1.SetDefaultsSecretBinding)
	old.ResourceVersion = "1"
	now := old.DeepCopy()
	old.Provider = nil
	compare(t, ValidateSecretBindingUpdate(now, old), "")
	compare(t, ValidateSecretBindingUpdate(old, old), "")
}
