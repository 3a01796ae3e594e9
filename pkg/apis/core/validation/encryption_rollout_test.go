package validation_test

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

// TestNoSecondRewrite tests that nothing starts to rewrite all encrypted resources while a change of the encryption is
// rolled out, nor the other way round.
func TestNoSecondRewrite(t *testing.T) {
	const (
		annotations = "metadata/annotations"
		state       = "status/lastOperation; status/credentials/encryptionAtRest"
		reconciled  = "{type: Reconcile, state: Succeeded}; "
		pending     = reconciled + "{resources: [configmaps], provider: {type: secretbox}}"
		applied     = reconciled + "{resources: [statefulsets.apps, configmaps], provider: {type: secretbox}}"
		older       = "; spec/kubernetes/version; spec/provider/workers/0/kubernetes/version; spec/kubernetes/kubelet/featureGates"
		oldVersion  = "; 1.33.4; 1.33.4; {}"
		resources   = "spec/kubernetes/kubeAPIServer/encryptionConfig/resources"
		refused     = "metadata.annotations[gardener.cloud/operation] Forbidden"
		refusedLate = "metadata.annotations[maintenance.gardener.cloud/operation] Forbidden"
		unchanged   = "spec.kubernetes.kubeAPIServer.encryptionConfig.resources Forbidden"
	)
	ask := func(operation string) string { return "{gardener.cloud/operation: " + operation + "}" }
	later := func(operation string) string { return "{maintenance.gardener.cloud/operation: " + operation + "}" }
	var rules []stateRule
	for _, operation := range []string{
		"rotate-credentials-start", "rotate-credentials-start-without-workers-rollout", "rotate-etcd-encryption-key",
	} {
		rules = append(rules,
			stateRule{state, pending, rule{annotations, ask(operation), refused}},
			stateRule{state, pending, rule{annotations, later(operation), refusedLate}},
			stateRule{state, applied, rule{annotations, ask(operation), ""}},
			stateRule{state, applied, rule{annotations, later(operation), ""}},
			stateRule{state, applied, rule{annotations + "; " + resources, ask(operation) + "; [configmaps]", refused + ", " + unchanged}},
			stateRule{state + "; " + annotations, applied + "; " + ask(operation), rule{resources, "[configmaps]", unchanged}},
			stateRule{state + "; " + annotations, pending + "; " + later(operation), rule{annotations, ask(operation), refused}},
			stateRule{state + "; " + annotations, pending + "; " + ask(operation), rule{"metadata/labels", "{a: b}", ""}},
		)
	}
	rules = append(rules,
		stateRule{state + older, pending + oldVersion, rule{annotations, ask("rotate-etcd-encryption-key-start"), refused}},
		stateRule{state + older, applied + oldVersion, rule{annotations, ask("rotate-etcd-encryption-key-start"), ""}},
		stateRule{state, pending, rule{annotations, ask("rotate-ca-start"), ""}},
		stateRule{state, pending, rule{annotations, ask("rotate-serviceaccount-key-start"), ""}},
		// A Shoot whose creation has begun, and has not stored what it encrypts.
		stateRule{"status/lastOperation; " + resources, "{type: Create, state: Processing}; []", rule{resources, "[configmaps]", unchanged}},
		stateRule{resources, "[]", rule{resources, "[configmaps]", ""}},
	)
	checkStates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootUpdate, rules)
}

// TestVersionUpdates tests that versions of Kubernetes are not lowered, and not raised too far, whatever part of the version
// is given.
func TestVersionUpdates(t *testing.T) {
	const cluster, pool, worker = "spec/kubernetes/version", "spec/provider/workers/0/kubernetes/version", "spec.provider.workers[0].kubernetes.version Forbidden"
	const versions, given = cluster + "; " + pool, "1.35.4; 1.34.3"
	checkStates(t, "shoot", 0, v1beta1.SetDefaultsShoot, ValidateShootUpdate, []stateRule{
		{versions, given, rule{cluster, "'1.34'", "spec.kubernetes.version Forbidden, " + worker}},
		{versions, given, rule{cluster, "'1.35'", "spec.kubernetes.version Forbidden"}},
		{versions, given, rule{cluster, "'1'", "spec.kubernetes.version Forbidden"}},
		{versions, given, rule{cluster, "1.35.3", "spec.kubernetes.version Forbidden"}},
		{versions, given, rule{cluster, "1.35.5", ""}},
		{versions, given, rule{cluster, "'1.36'", ""}},
		{versions, given, rule{cluster, "'1.37'", "spec.kubernetes.version Forbidden"}},
		{versions, given, rule{pool, "'1.33'", worker}},
		{versions, given, rule{pool, "'1.34'", worker}},
		{versions, given, rule{pool, "1.34.2", worker}},
		{versions, given, rule{pool, "'1.35'", ""}},
		{versions, "'1.35'; '1.34'", rule{cluster, "'1.34'", "spec.kubernetes.version Forbidden"}},
		{versions, "'1.35'; '1.34'", rule{cluster, "1.35.4", ""}},
		{versions, "'1.35'; '1.34'", rule{"metadata/labels", "{a: b}", ""}},
	})
}
