package health

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestJob(t *testing.T) {
	checkAll(t, "batch/v1", "Job", map[string]expectation{
		"fresh":          {"", Verdict{}},
		"changed":        {"metadata: {generation: 2}\n", Verdict{}},
		"suspended":      {"status: {conditions: [{type: Suspended, status: 'True'}]}\n", Verdict{}},
		"complete":       {"status: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}\n", Verdict{}},
		"not failed":     {"status: {conditions: [{type: Failed, status: 'False'}]}\n", Verdict{}},
		"untyped":        {"status: {conditions: [{status: 'True'}]}\n", Verdict{}},
		"negative count": {"status: {active: -1, failed: -3}\n", Verdict{}},
		"failed": {"status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: gave up}]}\n", Verdict{
			Unhealthy: `condition "Failed" has invalid status True (expected False) due to BackoffLimitExceeded: gave up`}},
		"wrong type": {"status: {conditions: [Failed]}\n", Verdict{Err: "the field status.conditions has to be of type v1.JobCondition"}},
	})
}

func TestPod(t *testing.T) {
	invalid := func(phase string) Verdict {
		return Verdict{Unhealthy: `pod is in invalid phase "` + phase + `" (expected one of ["Running" "Succeeded"])`}
	}
	checkAll(t, "v1", "Pod", map[string]expectation{
		"fresh":      {"", invalid("")},
		"pending":    {"status: {phase: Pending}\n", invalid("Pending")},
		"running":    {"status: {phase: Running}\n", Verdict{}},
		"succeeded":  {"status: {phase: Succeeded}\n", Verdict{}},
		"failed":     {"status: {phase: Failed}\n", invalid("Failed")},
		"wrong type": {"status: {phase: 1}\n", Verdict{Err: "the field status.phase has to be of type v1.PodPhase, but is a JSON number"}},
	})
}

func TestRelevantPod(t *testing.T) {
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"pending":    {corev1.PodStatus{Phase: corev1.PodPending}, true},
		"running":    {corev1.PodStatus{Phase: corev1.PodRunning}, true},
		"succeeded":  {corev1.PodStatus{Phase: corev1.PodSucceeded}, false},
		"failed":     {corev1.PodStatus{Phase: corev1.PodFailed}, false},
		"evicted":    {corev1.PodStatus{Reason: "Evicted"}, false},
		"preempting": {corev1.PodStatus{Reason: "Preempting"}, false},
		"affinity":   {corev1.PodStatus{Reason: "NodeAffinity"}, false},
		"node lost":  {corev1.PodStatus{Reason: "NodeLost"}, false},
		"out of cpu": {corev1.PodStatus{Reason: "OutOfcpu"}, false},
		"cpu out of": {corev1.PodStatus{Reason: "cpuOutOf"}, true},
		"completed": {corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"}}}, false},
		"not ready": {corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}}, true},
		"disrupted": {corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}, false},
		"not disrupted": {corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse}}}, true},
	} {
		if got := RelevantPod(&corev1.Pod{Status: test.status}); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestService(t *testing.T) {
	lacking := Verdict{Unhealthy: "service is missing ingress status"}
	checkAll(t, "v1", "Service", map[string]expectation{
		"type unset":            {"", Verdict{}},
		"cluster IP":            {"spec: {type: ClusterIP}\n", Verdict{}},
		"load balancer, fresh":  {"spec: {type: LoadBalancer}\n", lacking},
		"load balancer, empty":  {"spec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: []}}\n", lacking},
		"load balancer, ready":  {"spec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}\n", Verdict{}},
		"ingress of wrong type": {"status: {loadBalancer: {ingress: 1.2.3.4}}\n", Verdict{Err: "the field status.loadBalancer.ingress has"}},
	})
}

func TestCheckNeverPanics(t *testing.T) {
	var noPod *corev1.Pod
	for _, obj := range []runtime.Object{nil, noPod, objectOf(t,
		"{apiVersion: v2, kind: Pod, status: {phase: Running, containerStatuses: [x]}}")} { // kstatus expects maps
		if got := Check(obj, OtherKindsFailuresOnly); got.Err == "" {
			t.Errorf("%T: %+v", obj, got)
		}
	}
}
