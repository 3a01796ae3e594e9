package health

import "testing"

func TestDeployment(t *testing.T) {
	const (
		available = "{type: Available, status: 'True'}"
		done      = "{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}"
		selector  = "selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: In, values: [b, a]}]}"
	)
	count := func(replicas int32) Verdict { return Verdict{OldPods: PodCount{"app=web,tier in (a,b)", replicas}} }
	checkAll(t, "apps/v1", "Deployment", map[string]expectation{
		"fresh": {"metadata: {generation: 2}\nspec: {replicas: 1}\n", unobserved("observed generation outdated (0/2)")},
		"changed": {"metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, " +
			"updatedReplicas: 1, conditions: [" + available + ", " + done + "]}", stale},
		"without conditions": {"spec: {replicas: 1}\nstatus: {observedGeneration: 1}\n", Verdict{
			Unhealthy: `condition "Available" is missing`, Progressing: `condition "Progressing" is missing`}},
		"condition without type": {"status: {conditions: [{status: 'True'}]}\n", Verdict{
			Unhealthy: `condition "Available" is missing`, Progressing: `condition "Progressing" is missing`}},
		"rolling": {"spec: {replicas: 2}\nstatus: {replicas: 3, updatedReplicas: 1, conditions: [" + available +
			", {type: Progressing, status: 'True', reason: ReplicaSetUpdated, message: is progressing}]}\n",
			Verdict{Progressing: "is progressing"}},
		"rolling, without a message": {"status: {conditions: [" + available +
			", {type: Progressing, status: 'True', reason: ReplicaSetUpdated}]}\n",
			Verdict{Progressing: `condition "Progressing" has reason "ReplicaSetUpdated"`}},
		"unavailable": {"spec: {replicas: 1}\nstatus: {replicas: 1, updatedReplicas: 1, terminatingReplicas: 0, conditions: [" +
			"{type: Available, status: 'False', reason: MinimumReplicasUnavailable, message: too few}, " + done + "]}\n", Verdict{
			Unhealthy: `condition "Available" has invalid status False (expected True) due to MinimumReplicasUnavailable: too few`}},
		"failed": {"spec: {replicas: 1}\nstatus: {replicas: 1, updatedReplicas: 1, conditions: [" + available +
			", {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: too slow}]}\n", Verdict{
			Unhealthy:   `condition "Progressing" has invalid status False (expected True) due to ProgressDeadlineExceeded: too slow`,
			Progressing: "too slow"}},
		"replica failure": {"spec: {replicas: 1}\nstatus: {replicas: 1, updatedReplicas: 1, terminatingReplicas: 0, conditions: [" +
			available + ", " + done + ", {type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota}]}\n", Verdict{
			Unhealthy: `condition "ReplicaFailure" has invalid status True (expected False) due to FailedCreate: quota`}},
		"paused": {"spec: {paused: true}\nstatus: {replicas: 1, updatedReplicas: 1, conditions: [" + available +
			", {type: Progressing, status: Unknown, reason: DeploymentPaused, message: Deployment is paused}]}\n", Verdict{
			Unhealthy:   `condition "Progressing" has invalid status Unknown (expected True) due to DeploymentPaused: Deployment is paused`,
			Progressing: "Deployment is paused"}},
		"rolled out": {"spec: {replicas: 2, " + selector + "}\nstatus: {replicas: 2, updatedReplicas: 2, conditions: [" +
			available + ", " + done + "]}\n", count(2)},
		"rolled out, one replica by default": {"spec: {" + selector + "}\nstatus: {replicas: 1, updatedReplicas: 1, conditions: [" +
			available + ", " + done + "]}\n", count(1)},
		"rolled out, counted by the controller": {"spec: {replicas: 2, " + selector + "}\nstatus: {replicas: 2, updatedReplicas: 2, " +
			"terminatingReplicas: 0, conditions: [" + available + ", " + done + "]}\n", Verdict{}},
		"scaling up": {"spec: {replicas: 5, " + selector + "}\nstatus: {replicas: 3, updatedReplicas: 3, conditions: [" + available +
			", " + done + "]}\n", Verdict{Progressing: "3 of 5 replica(s) have been updated"}},
		"scaling down, counted by the controller": {"spec: {replicas: 2}\nstatus: {replicas: 3, updatedReplicas: 3, " +
			"terminatingReplicas: 0, conditions: [" + available + ", " + done + "]}\n", Verdict{Progressing: oldPodsRemain}},
		"terminating, counted by the controller": {"spec: {replicas: 2}\nstatus: {replicas: 2, updatedReplicas: 2, " +
			"terminatingReplicas: 1, conditions: [" + available + ", " + done + "]}\n", Verdict{Progressing: oldPodsRemain}},
		"scaled to zero": {"spec: {replicas: 0, " + selector + "}\nstatus: {conditions: [" + available + ", " + done + "]}\n", count(0)},
		"without a deadline": {"spec: {progressDeadlineSeconds: 2147483647, replicas: 2}\nstatus: {replicas: 2, updatedReplicas: 2, " +
			"conditions: [" + available + "]}\n", Verdict{}},
		"without a deadline, rolling": {"spec: {progressDeadlineSeconds: 2147483647, replicas: 2}\nstatus: {replicas: 2, " +
			"updatedReplicas: 1, conditions: [" + available + "]}\n", Verdict{Progressing: "1 of 2 replica(s) have been updated"}},
		"empty selector": {"spec: {selector: {}}\nstatus: {replicas: 1, updatedReplicas: 1, conditions: [" + available + ", " + done +
			"]}\n", Verdict{}},
		"invalid selector": {"spec: {selector: {matchExpressions: [{key: a, operator: Is}]}}\nstatus: {replicas: 1, " +
			"updatedReplicas: 1, conditions: [" + available + ", " + done + "]}\n",
			Verdict{Err: `the field spec.selector is invalid: "Is" is not a valid label selector operator`}},
		"negative": {"spec: {replicas: -3, " + selector + "}\nstatus: {replicas: -1, updatedReplicas: -2, conditions: [" + available +
			", " + done + "]}\n", Verdict{Progressing: "-2 of 0 replica(s) have been updated"}},
		"string for a count": {"status: {readyReplicas: two}\n",
			Verdict{Err: "the field status.readyReplicas has to be of type int32, but is a JSON string"}},
		"map for the conditions": {"status: {conditions: {a: b}}\n", Verdict{Err: "the field status.conditions has to be of type"}},
		"string for the status":  {"status: fine\n", Verdict{Err: "the field status has to be of type v1.DeploymentStatus"}},
		"no time":                {"metadata: {creationTimestamp: yesterday}\n", Verdict{Err: `parsing time "yesterday"`}},
	})
}

func TestCounted(t *testing.T) {
	asked := Verdict{Unhealthy: "ill", OldPods: PodCount{"a=b", 2}}
	if got, want := asked.Counted(2), (Verdict{Unhealthy: "ill"}); got != want {
		t.Errorf("with the desired number of Pods: %+v", got)
	}
	for _, pods := range []int32{0, 1, 3} {
		if got, want := asked.Counted(pods), (Verdict{Unhealthy: "ill", Progressing: oldPodsRemain}); got != want {
			t.Errorf("with %d Pods: %+v", pods, got)
		}
	}
	again := asked.Counted(3)
	again.OldPods = asked.OldPods // while old Pods remain
	if got, want := again.Counted(2), (Verdict{Unhealthy: "ill"}); got != want {
		t.Errorf("after the old Pods terminated: %+v, want %+v", got, want)
	}
	if got := (Verdict{}).Counted(3); got != (Verdict{}) {
		t.Errorf("without a requested count: %+v", got)
	}
}

func TestStatefulSet(t *testing.T) {
	rolling := Verdict{Progressing: "1 of 3 replica(s) have been updated"}
	checkAll(t, "apps/v1", "StatefulSet", map[string]expectation{
		"fresh":      {"metadata: {generation: 2}\n", unobserved("observed generation outdated (0/2)")},
		"changed":    {"metadata: {generation: 2}\nstatus: {observedGeneration: 1, readyReplicas: 1, updatedReplicas: 1}\n", stale},
		"rolled out": {"spec: {replicas: 3}\nstatus: {readyReplicas: 3, updatedReplicas: 3}\n", Verdict{}},
		"rolling":    {"spec: {replicas: 3}\nstatus: {readyReplicas: 3, updatedReplicas: 1}\n", rolling},
		"not ready": {"spec: {replicas: 3}\nstatus: {readyReplicas: 2, updatedReplicas: 3}\n",
			Verdict{Unhealthy: "not enough ready replicas (2/3)"}},
		"one replica by default": {"status: {}\n", Verdict{
			Unhealthy: "not enough ready replicas (0/1)", Progressing: "0 of 1 replica(s) have been updated"}},
		"scaled to zero": {"spec: {replicas: 0}\n", Verdict{}},
		"on delete": {"spec: {replicas: 3, updateStrategy: {type: OnDelete}}\nstatus: {readyReplicas: 3, updatedReplicas: 1}\n",
			Verdict{}},
		"partition, done": {"spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}\n" +
			"status: {readyReplicas: 3, updatedReplicas: 1}\n", Verdict{}},
		"partition, rolling": {"spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 2}}}\n" +
			"status: {readyReplicas: 5, updatedReplicas: 1}\n", rolling},
		"partition above replicas": {"spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 9}}}\n" +
			"status: {readyReplicas: 3}\n", Verdict{}},
		"negative partition": {"spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: -9}}}\n" +
			"status: {readyReplicas: 3, updatedReplicas: 1}\n", rolling},
		"negative replicas": {"spec: {replicas: -1}\n", Verdict{}},
		"map for a count": {"status: {updatedReplicas: {}}\n",
			Verdict{Err: "the field status.updatedReplicas has to be of type int32, but is a JSON object"}},
	})
}

func TestDaemonSet(t *testing.T) {
	const done = "desiredNumberScheduled: 10, currentNumberScheduled: 10, updatedNumberScheduled: 10"
	const rolling = "desiredNumberScheduled: 10, currentNumberScheduled: 10, updatedNumberScheduled: 4"
	const progress = "4 of 10 replica(s) have been updated"
	strategy := func(maxUnavailable string) string {
		return "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: " + maxUnavailable + "}}}\n"
	}
	checkAll(t, "apps/v1", "DaemonSet", map[string]expectation{
		"fresh":      {"metadata: {generation: 2}\n", unobserved("observed generation outdated (0/2)")},
		"changed":    {"metadata: {generation: 2}\nstatus: {observedGeneration: 1, " + done + "}\n", stale},
		"rolled out": {"status: {" + done + "}\n", Verdict{}},
		"no nodes":   {"status: {}\n", Verdict{}},
		"not scheduled": {"status: {desiredNumberScheduled: 3, currentNumberScheduled: 2, updatedNumberScheduled: 3}\n",
			Verdict{Unhealthy: "not enough scheduled pods (2/3)"}},
		"misscheduled": {"status: {numberMisscheduled: 1, " + done + "}\n", Verdict{Unhealthy: "misscheduled pods found (1)"}},
		"degraded": {strategy("3") + "status: {numberUnavailable: 1, " + done + "}\n",
			Verdict{Unhealthy: "too many unavailable pods found (1/10)"}},
		"rolling": {strategy("3") + "status: {numberUnavailable: 3, " + rolling + "}\n", Verdict{Progressing: progress}},
		"rolling, too fast": {strategy("3") + "status: {numberUnavailable: 4, " + rolling + "}\n", Verdict{
			Unhealthy:   "too many unavailable pods found (4/10, only max. 3 unavailable pods allowed)",
			Progressing: progress}},
		"rolling, percentage rounded down": {strategy("'19%'") + "status: {numberUnavailable: 2, " + rolling + "}\n", Verdict{
			Unhealthy:   "too many unavailable pods found (2/10, only max. 1 unavailable pods allowed)",
			Progressing: progress}},
		"rolling, no number": {strategy("many") + "status: {numberUnavailable: 1, " + rolling + "}\n", Verdict{
			Unhealthy:   "too many unavailable pods found (1/10, only max. 0 unavailable pods allowed)",
			Progressing: progress}},
		"rolling, limit unset": {"spec: {updateStrategy: {type: RollingUpdate}}\nstatus: {numberUnavailable: 1, " + rolling + "}\n",
			Verdict{
				Unhealthy:   "too many unavailable pods found (1/10, only max. 0 unavailable pods allowed)",
				Progressing: progress}},
		"on delete": {"spec: {updateStrategy: {type: OnDelete}}\nstatus: {" + rolling + "}\n", Verdict{}},
		"on delete, degraded": {"spec: {updateStrategy: {type: OnDelete}}\nstatus: {numberUnavailable: 1, " + rolling + "}\n",
			Verdict{Unhealthy: "too many unavailable pods found (1/10, only max. 0 unavailable pods allowed)"}},
		"negative": {"status: {desiredNumberScheduled: -1, numberUnavailable: -2, numberMisscheduled: -3}\n", Verdict{}},
		"list for a count": {"status: {numberMisscheduled: [1]}\n",
			Verdict{Err: "the field status.numberMisscheduled has to be of type int32, but is a JSON array"}},
	})
}

func TestReplicaSet(t *testing.T) {
	for kind, apiVersion := range map[string]string{"ReplicaSet": "apps/v1", "ReplicationController": "v1"} {
		lacking := Verdict{Unhealthy: kind + " does not have minimum availability"}
		checkAll(t, apiVersion, kind, map[string]expectation{
			kind + " changed": {"metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, readyReplicas: 1}\n",
				Verdict{Unhealthy: "observed generation outdated (1/2)", Unobserved: true}},
			kind + " ready":          {"spec: {replicas: 2}\nstatus: {readyReplicas: 2}\n", Verdict{}},
			kind + " degraded":       {"spec: {replicas: 2}\nstatus: {readyReplicas: 1}\n", lacking},
			kind + " scaled to zero": {"spec: {replicas: 0}\n", Verdict{}},
			kind + " unset":          {"spec: {}\n", Verdict{}},
			kind + " negative":       {"spec: {replicas: -1}\n", Verdict{}},
			kind + " string": {"spec: {replicas: x}\n",
				Verdict{Err: "the field spec.replicas has to be of type int32, but is a JSON string"}},
		})
	}
}
