package validation_test

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestShootOperations(t *testing.T) {
	const (
		annotations = "metadata/annotations"
		last        = "status/lastOperation"
		reconciled  = "{type: Reconcile, state: Processing}"
		created     = "{type: Create, state: Succeeded}"
		creating    = "{type: Create, state: Processing}"
		rotation    = "status/credentials/rotation"
		refused     = "metadata.annotations[gardener.cloud/operation] Forbidden"
		unknown     = "metadata.annotations[gardener.cloud/operation] NotSupported"
		later       = "metadata.annotations[maintenance.gardener.cloud/operation] "
		hibernated  = "; spec/hibernation/enabled"
		encrypted   = "status/credentials/encryptionAtRest; "
		applied     = "{resources: [statefulsets.apps, configmaps], provider: {type: secretbox}}; "
		older       = "; spec/kubernetes/version; spec/provider/workers/0/kubernetes/version; spec/kubernetes/kubelet/featureGates"
	)
	ask := func(operations string) string { return "{gardener.cloud/operation: '" + operations + "'}" }
	inWindow := func(operations string) string { return "{maintenance.gardener.cloud/operation: '" + operations + "'}" }
	given := func(state, stateValue, operations, want string) stateRule {
		return stateRule{state, stateValue, rule{annotations, ask(operations), want}}
	}
	phases := func(ca, serviceAccountKey, etcdKey string) string {
		return "{certificateAuthorities: {phase: " + ca + "}, serviceAccountKey: {phase: " + serviceAccountKey + "}, etcdEncryptionKey: {phase: " + etcdKey + "}}"
	}
	ready := func(phases string) string { return reconciled + "; " + phases }
	checkStates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []stateRule{
		given("", "", "reconcile", ""),
		given("", "", "retry", ""),
		given("", "", "maintain", ""),
		given("", "", "dance", unknown),
		given("", "", "migrate", unknown),
		given("", "", "retry;reconcile", refused),
		given("", "", "reconcile;maintain", refused),
		given("", "", "force-in-place-update;rotate-ssh-keypair", refused),
		given("", "", "rotate-ssh-keypair;rotate-observability-credentials", ""),
		{"", "", rule{annotations, inWindow("retry"), ""}},
		{"", "", rule{annotations, inWindow("maintain"), ""}},
		{"", "", rule{annotations, inWindow("retry;rotate-ssh-keypair"), later + "Forbidden"}},
		{"", "", rule{annotations, inWindow("dance"), later + "NotSupported"}},
		{"", "", rule{annotations, inWindow("rotate-ssh-keypair"), ""}},
		{"", "", rule{annotations, "{gardener.cloud/operation: reconcile, maintenance.gardener.cloud/operation: reconcile}", later + "Forbidden"}},
		{"", "", rule{annotations, inWindow("rotate-ca-start"), later + "Forbidden"}},

		given("", "", "rotate-ca-start", refused),
		given(last, creating, "rotate-ca-start", refused),
		given(last, created, "rotate-ca-start", ""),
		given(last, "{type: Restore, state: Succeeded}", "rotate-ca-start", ""),
		given(last, "{type: Migrate, state: Succeeded}", "rotate-ca-start", refused),
		given(last, reconciled, "rotate-ca-start;rotate-ca-start-without-workers-rollout", refused),
		given(last, reconciled, "rotate-serviceaccount-key-start;rotate-serviceaccount-key-start-without-workers-rollout", refused),
		given(last, reconciled, "rotate-credentials-start;rotate-credentials-start-without-workers-rollout", refused),
		given(last, reconciled, "rotate-ca-start-without-workers-rollout;rotate-serviceaccount-key-start", ""),
		given(last+"; "+rotation, ready(phases("Prepared", "Completed", "Completed")), "rotate-ca-start", refused),
		given(last+"; "+rotation, ready(phases("Completed", "Prepared", "Preparing")), "rotate-ca-start", ""),
		given(last+"; "+rotation, ready(phases("Completed", "Prepared", "Completed")), "rotate-serviceaccount-key-start", refused),
		given(last+"; "+rotation, ready(phases("Completed", "Completed", "Prepared")), "rotate-etcd-encryption-key", refused),
		given(last+"; "+rotation, ready(phases("Completed", "Completed", "Prepared")), "rotate-credentials-start", refused),
		given(encrypted+last+"; "+rotation, applied+ready(phases("Completed", "Completed", "Completed")), "rotate-credentials-start", ""),
		given(encrypted+last, applied+reconciled, "rotate-etcd-encryption-key", ""),
		given(last, creating, "rotate-etcd-encryption-key", refused),
		given(last, reconciled, "rotate-etcd-encryption-key-start", refused),
		given(encrypted+last+older, applied+reconciled+"; 1.33.4; 1.33.4; {}", "rotate-etcd-encryption-key-start", ""),
		given(last+older+"; "+rotation, reconciled+"; 1.33.4; 1.33.4; {}; "+phases("Completed", "Completed", "Prepared"), "rotate-etcd-encryption-key-complete", ""),
		given(last+older, reconciled+"; 1.33.4; 1.33.4; {}", "rotate-etcd-encryption-key-complete", refused),

		given(rotation, phases("Prepared", "Completed", "Completed"), "rotate-ca-complete", ""),
		given(rotation, phases("Preparing", "Completed", "Completed"), "rotate-ca-complete", refused),
		given("", "", "rotate-serviceaccount-key-complete", refused),
		given(rotation, phases("Completed", "Prepared", "Completed"), "rotate-serviceaccount-key-complete", ""),
		given(rotation, phases("Prepared", "Prepared", "Completed"), "rotate-credentials-complete", ""),
		given(rotation, phases("Prepared", "Completed", "Completed"), "rotate-credentials-complete", refused),
		given(rotation+older, phases("Prepared", "Prepared", "Preparing")+"; 1.33.4; 1.33.4; {}", "rotate-credentials-complete", refused),

		given(last+"; status/inPlaceUpdates/pendingWorkerUpdates/autoInPlaceUpdate", reconciled+"; [pool]", "rotate-ca-start", refused),
		given(last+"; status/inPlaceUpdates/pendingWorkerUpdates/manualInPlaceUpdate", reconciled+"; [pool]", "rotate-credentials-start", refused),
		given(encrypted+last+"; status/inPlaceUpdates/pendingWorkerUpdates/autoInPlaceUpdate", applied+reconciled+"; [pool]", "rotate-etcd-encryption-key", ""),

		given(last+hibernated, reconciled+"; true", "rotate-credentials-start", refused),
		given(last+hibernated, reconciled+"; true", "rotate-etcd-encryption-key", refused),
		given(last+hibernated, reconciled+"; true", "rotate-serviceaccount-key-start", refused),
		given(last+hibernated, reconciled+"; true", "rollout-workers=*", refused),
		given(last+"; status/hibernated", reconciled+"; true", "rollout-workers=pool", refused),
		given(last+hibernated, reconciled+"; true", "rotate-ca-start", ""),

		given("", "", "rollout-workers=*", ""),
		given("", "", "rollout-workers=pool", ""),
		given("", "", "rollout-workers=other", "metadata.annotations[gardener.cloud/operation] Invalid"),
		given("", "", "rollout-workers=pool,pool", "metadata.annotations[gardener.cloud/operation] Duplicate"),
		given("", "", "rollout-workers", "metadata.annotations[gardener.cloud/operation] Required"),
		given("", "", "rotate-rollout-workers=pool", refused),
		given(rotation, phases("WaitingForWorkersRollout", "Completed", "Completed"), "rotate-rollout-workers=pool", ""),
		given(rotation, phases("Completed", "WaitingForWorkersRollout", "Completed"), "rotate-rollout-workers=pool", ""),
		given(rotation, phases("WaitingForWorkersRollout", "Completed", "Completed"), "rotate-rollout-workers=*", "metadata.annotations[gardener.cloud/operation] Invalid"),

		// An operation that the stored object already requests is not checked again.
		{annotations, ask("rotate-ca-start"), rule{"metadata/labels", "{a: b}", ""}},
		{annotations, ask("rotate-ca-start"), rule{annotations, ask("rotate-ca-start;rotate-ssh-keypair"), ""}},
	})
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{
		{annotations, ask("rotate-ca-start"), refused},
		{annotations, ask("maintain"), ""},
	})
}

func TestRollOutOfPoolsThatAreUpdatedInPlace(t *testing.T) {
	const w, refused = "spec/provider/workers/0/", "metadata.annotations[gardener.cloud/operation] Forbidden"
	checkStates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []stateRule{
		{
			w + "updateStrategy; " + w + "maxSurge; " + w + "maxUnavailable", "AutoInPlaceUpdate; 0; 1",
			rule{"metadata/annotations", "{gardener.cloud/operation: 'rollout-workers=*'}", refused},
		},
		{
			w + "updateStrategy; " + w + "maxSurge; " + w + "maxUnavailable", "AutoInPlaceUpdate; 0; 1",
			rule{"metadata/annotations", "{gardener.cloud/operation: rollout-workers=pool}", "metadata.annotations[gardener.cloud/operation] Forbidden"},
		},
	})
}

// TestRollOutOfSelfHostedShoots tests that machines are replaced only if the Shoot manages them.
func TestRollOutOfSelfHostedShoots(t *testing.T) {
	const refused = "metadata.annotations[gardener.cloud/operation] Forbidden"
	const binding = "spec/credentialsBindingName"
	ask := func(pools string) string { return "{gardener.cloud/operation: 'rollout-workers=" + pools + "'}" }
	pool := decode(t, example(t, "shoot", 2), v1beta1.SetDefaultsShoot).Spec.Provider.Workers[0].Name
	checkStates(t, "shoot", 2, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []stateRule{
		{binding, "", rule{"metadata/annotations", ask("*"), refused}},
		{binding, "", rule{"metadata/annotations", ask(pool), refused}},
		{binding, "a", rule{"metadata/annotations", ask("*"), ""}},
		{binding, "a", rule{"metadata/annotations", ask(pool), ""}},
	})
}

func TestForcedDeletion(t *testing.T) {
	const annotation, yes, at = "metadata/annotations", "{confirmation.gardener.cloud/force-deletion: 'true'}", "metadata.annotations[confirmation.gardener.cloud/force-deletion] Forbidden"
	const deleted = "metadata/deletionTimestamp; status/lastErrors"
	failed := func(code string) string { return "'2026-01-01T00:00:00Z'; [{description: a, codes: [" + code + "]}]" }
	checkStates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []stateRule{
		{"", "", rule{annotation, yes, at}},
		{deleted, failed("ERR_INFRA_UNAUTHORIZED"), rule{annotation, yes, ""}},
		{deleted, failed("ERR_CLEANUP_CLUSTER_RESOURCES"), rule{annotation, yes, ""}},
		{deleted, failed("ERR_INFRA_QUOTA_EXCEEDED"), rule{annotation, yes, at}},
		{deleted, "'2026-01-01T00:00:00Z'; []", rule{annotation, yes, at}},
		{deleted + "; " + annotation, failed("ERR_INFRA_UNAUTHORIZED") + "; " + yes, rule{annotation, "{}", at}},
		{deleted + "; " + annotation, "'2026-01-01T00:00:00Z'; []; " + yes, rule{"metadata/labels", "{a: b}", ""}},
	})
	checkRules(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShoot, []rule{{annotation, yes, at}})
}
