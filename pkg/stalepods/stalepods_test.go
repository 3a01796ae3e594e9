package stalepods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// TestJudge checks that the decision is the same for complete and reduced Pods, and that the filter for watches passes the Pods
// that need a decision.
func TestJudge(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		change(pod)
		return pod
	}
	deleted := func(ago time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { at := metav1.NewTime(now.Add(-ago)); pod.DeletionTimestamp = &at }
	}
	reason := func(reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, reason }
	}
	of := func(kind string, phase corev1.PodPhase) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Phase, pod.OwnerReferences = phase, []metav1.OwnerReference{{Kind: kind, Name: "x"}}
		}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want Verdict
	}{
		"running":          {pod(func(*corev1.Pod) {}), Verdict{}},
		"evicted":          {pod(reason("Evicted")), Verdict{Remove: true}},
		"node affinity":    {pod(reason("NodeAffinity")), Verdict{Remove: true}},
		"node lost":        {pod(reason("NodeLost")), Verdict{Remove: true}},
		"preempting":       {pod(reason("Preempting")), Verdict{Remove: true}},
		"out of CPU":       {pod(reason("OutOfcpu")), Verdict{Remove: true}},
		"failed otherwise": {pod(reason("Error")), Verdict{}},
		"disrupted": {pod(func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		}), Verdict{Remove: true}},
		"ended, of a ReplicaSet":   {pod(of("ReplicaSet", corev1.PodSucceeded)), Verdict{Remove: true}},
		"failed, of a ReplicaSet":  {pod(of("ReplicaSet", corev1.PodFailed)), Verdict{Remove: true}},
		"running, of a ReplicaSet": {pod(of("ReplicaSet", corev1.PodRunning)), Verdict{}},
		"ended, of a Job":          {pod(of("Job", corev1.PodSucceeded)), Verdict{}},
		"terminating":              {pod(deleted(time.Minute)), Verdict{Again: now.Add(4 * time.Minute)}},
		"terminating too long":     {pod(deleted(5 * time.Minute)), Verdict{Remove: true, Force: true}},
		"deleted without grace":    {pod(func(pod *corev1.Pod) { deleted(time.Hour)(pod); pod.DeletionGracePeriodSeconds = ptr.To[int64](0) }), Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			reduced, err := Reduce(test.pod)
			if err != nil {
				t.Fatal(err)
			}
			kept, ok := reduced.(*corev1.Pod)
			if !ok {
				t.Fatalf("a Pod became a %T", reduced)
			}
			for _, each := range []*corev1.Pod{test.pod, kept} {
				if got := Judge(each, now); got != test.want {
					t.Errorf("%+v, want %+v", got, test.want)
				}
			}
			if Judge(test.pod, now) != (Verdict{}) && !MayBeStale(test.pod) {
				t.Error("the filter for watches does not pass the Pod")
			}
		})
	}
}
