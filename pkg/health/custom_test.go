package health

import "testing"

func TestDefinition(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		checkAll(t, "apiextensions.k8s.io/"+version, "CustomResourceDefinition", map[string]expectation{
			version + " fresh": {"", Verdict{Unhealthy: `condition "NamesAccepted" is missing`}},
			version + " names accepted": {"status: {conditions: [{type: NamesAccepted, status: 'True'}]}\n",
				Verdict{Unhealthy: `condition "Established" is missing`}},
			version + " ready": {"status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}\n",
				Verdict{}},
			version + " conflict": {"status: {conditions: [{type: Established, status: 'True'}, " +
				"{type: NamesAccepted, status: 'False', reason: ListKindConflict, message: in use}]}\n", Verdict{
				Unhealthy: `condition "NamesAccepted" has invalid status False (expected True) due to ListKindConflict: in use`}},
			version + " terminating": {"status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}, " +
				"{type: Terminating, status: 'True', reason: InstanceDeletionInProgress, message: going}]}\n", Verdict{
				Unhealthy: `condition "Terminating" has invalid status True (expected False) due to InstanceDeletionInProgress: going`}},
			version + " wrong type": {"status: {conditions: none}\n", Verdict{Err: "the field status.conditions has to be of type"}},
		})
	}
}

func TestMonitoring(t *testing.T) {
	const available = "{type: Available, status: 'True', observedGeneration: 2}"
	const reconciled = "{type: Reconciled, status: 'True', observedGeneration: 2}"
	const generation = "metadata: {generation: 2}\n"
	for _, kind := range []string{"Prometheus", "Alertmanager"} {
		checkAll(t, "monitoring.coreos.com/v1", kind, map[string]expectation{
			kind + " fresh": {generation, Verdict{
				Unhealthy: `condition "Available" is missing`, Progressing: `condition "Reconciled" is missing`}},
			kind + " changed": {generation + "status: {availableReplicas: 1, updatedReplicas: 1, conditions: [" +
				"{type: Available, status: 'True', observedGeneration: 1}, {type: Reconciled, status: 'True', observedGeneration: 1}]}\n",
				stale},
			kind + " available, not reconciled": {generation + "status: {availableReplicas: 1, updatedReplicas: 1, conditions: [" +
				available + ", {type: Reconciled, status: 'True', observedGeneration: 1}]}\n",
				Verdict{Progressing: "observed generation outdated (1/2)", Unobserved: true}},
			kind + " ready": {generation + "spec: {replicas: 2}\nstatus: {availableReplicas: 2, updatedReplicas: 2, conditions: [" +
				available + ", " + reconciled + "]}\n", Verdict{}},
			kind + " rolling": {generation + "spec: {replicas: 2}\nstatus: {availableReplicas: 2, updatedReplicas: 1, conditions: [" +
				available + ", " + reconciled + "]}\n", Verdict{Progressing: "1 of 2 replica(s) have been updated"}},
			kind + " one replica by default": {generation + "status: {updatedReplicas: 1, conditions: [" + available + ", " + reconciled +
				"]}\n", Verdict{Unhealthy: "not enough available replicas (0/1)"}},
			kind + " scaled to zero": {generation + "spec: {replicas: 0}\nstatus: {conditions: [" + available + ", " + reconciled + "]}\n",
				Verdict{}},
			kind + " negative": {generation + "spec: {replicas: -1}\nstatus: {availableReplicas: 0, conditions: [" + available + ", " +
				reconciled + "]}\n", Verdict{}},
			kind + " degraded": {generation + "status: {availableReplicas: 1, updatedReplicas: 1, conditions: [" + reconciled +
				", {type: Available, status: Degraded, observedGeneration: 2, reason: SomePodsNotReady, message: 1 of 2}]}\n", Verdict{
				Unhealthy: `condition "Available" has invalid status Degraded (expected True) due to SomePodsNotReady: 1 of 2`}},
			kind + " failed": {generation + "status: {availableReplicas: 1, conditions: [" + available +
				", {type: Reconciled, status: 'False', observedGeneration: 2, reason: ReconciliationFailed, message: refused}]}\n", Verdict{
				Progressing: `condition "Reconciled" has invalid status False (expected True) due to ReconciliationFailed: refused`}},
			kind + " wrong type": {"status: {availableReplicas: many}\n",
				Verdict{Err: "the field status.availableReplicas has to be of type int64, but is a JSON string"}},
		})
	}
}

func TestAutoscaler(t *testing.T) {
	checkAll(t, "autoscaling.k8s.io/v1", "VerticalPodAutoscaler", map[string]expectation{
		"fresh":     {"metadata: {generation: 2}\n", Verdict{}},
		"supported": {"status: {conditions: [{type: ConfigUnsupported, status: 'False'}]}\n", Verdict{}},
		"untyped":   {"status: {conditions: [{status: 'True'}, {}]}\n", Verdict{}},
		"not checked yet": {"status: {conditions: [{type: ConfigUnsupported, status: 'True', message: Unknown error during checking if target " +
			"druid.gardener.cloud/v1alpha1.Etcd/etcd-main is a topmost well-known or scalable controller}]}\n", Verdict{}},
		"unsupported": {"status: {conditions: [{type: ConfigUnsupported, status: 'True', message: no target}]}\n", Verdict{
			Unhealthy: `condition "ConfigUnsupported" has invalid status True (expected False) due to : no target`}},
		"wrong type": {"status: {conditions: [{type: [a]}]}\n", Verdict{Err: "the field status.conditions.type has to be of type string"}},
	})
}

func TestCertificate(t *testing.T) {
	notReady := `certificate state is "" ("Ready" expected)`
	checkAll(t, "cert.gardener.cloud/v1alpha1", "Certificate", map[string]expectation{
		"fresh": {"metadata: {generation: 1}\n", Verdict{
			Unhealthy: notReady, Progressing: "observed generation outdated (0/1)", Unobserved: true}},
		"ready": {"metadata: {generation: 1}\nstatus: {state: Ready, observedGeneration: 1}\n", Verdict{}},
		"ready, with condition": {"status: {state: Ready, conditions: [{type: Ready, status: 'True'}]}\n",
			Verdict{}},
		"changed": {"metadata: {generation: 2}\nstatus: {state: Ready, observedGeneration: 1}\n",
			Verdict{Progressing: "observed generation outdated (1/2)", Unobserved: true}},
		"pending": {"status: {state: Pending}\n", Verdict{Unhealthy: `certificate state is "Pending" ("Ready" expected)`}},
		"revoked": {"status: {state: Ready, conditions: [{type: Ready, status: 'False', reason: Revoked, message: gone}]}\n", Verdict{
			Unhealthy: `condition "Ready" has invalid status False (expected True) due to Revoked: gone`}},
		"wrong type": {"status: {state: {}}\n", Verdict{Err: "the field status.state has to be of type string, but is a JSON object"}},
	})
}

func TestIssuer(t *testing.T) {
	checkAll(t, "cert.gardener.cloud/v1alpha1", "Issuer", map[string]expectation{
		"fresh": {"metadata: {generation: 1}\n", Verdict{Unhealthy: `issuer state is "" ("Ready" expected)`,
			Progressing: "observed generation outdated (0/1)", Unobserved: true}},
		"ready":   {"metadata: {generation: 1}\nstatus: {state: Ready, observedGeneration: 1}\n", Verdict{}},
		"error":   {"status: {state: Error}\n", Verdict{Unhealthy: `issuer state is "Error" ("Ready" expected)`}},
		"untyped": {"status: {state: Ready, conditions: [{status: 'False'}]}\n", Verdict{}},
		"wrong type": {"metadata: {generation: x}\n",
			Verdict{Err: "the field metadata.generation has to be of type int64, but is a JSON string"}},
	})
}

func TestAPIService(t *testing.T) {
	const available = "status: {conditions: [{type: Available, status: "
	checkAll(t, "apiregistration.k8s.io/v1", "APIService", map[string]expectation{
		"fresh":     {"", Verdict{Unhealthy: `condition "Available" is missing`, Progressing: `condition "Available" is missing`}},
		"available": {available + "'True', reason: Passed}]}\n", Verdict{}},
		"local":     {available + "'True', reason: Local}]}\n", Verdict{}},
		"no service": {available + "'False', reason: ServiceNotFound, message: it is not there}]}\n", Verdict{
			Unhealthy: `condition "Available" has invalid status False (expected True) due to ServiceNotFound: it is not there`}},
		"unknown": {available + "Unknown, reason: New, message: wait}]}\n", Verdict{
			Unhealthy: `condition "Available" has invalid status Unknown (expected True) due to New: wait`}},
	})
}
