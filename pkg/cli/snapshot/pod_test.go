package snapshot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/live"
)

// TestRunningPod checks the health of Pods whose phase is Running.
func TestRunningPod(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2, Message: "no such flag"}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	unready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "main is unready"}
	completed := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	for name, test := range map[string]struct {
		ready                  corev1.PodCondition
		init                   bool
		container              corev1.ContainerStatus
		unhealthy, progressing string
	}{
		"crash loop": {ready: unready, container: corev1.ContainerStatus{State: waiting}, unhealthy: "container main: CrashLoopBackOff: back-off"},
		"crash loop with its last message": {ready: unready, container: corev1.ContainerStatus{State: waiting, LastTerminationState: ended},
			unhealthy: "container main: CrashLoopBackOff: back-off; it last ended with Error (exit code 2): no such flag"},
		"sidecar in a crash loop": {ready: unready, init: true, container: corev1.ContainerStatus{State: waiting}, unhealthy: "container main: CrashLoopBackOff: back-off"},
		"just ended":              {ready: unready, container: corev1.ContainerStatus{State: ended}, unhealthy: "container main: ended with Error (exit code 2): no such flag"},
		"just restarted": {ready: unready, container: corev1.ContainerStatus{State: running, RestartCount: 3, LastTerminationState: ended},
			unhealthy: "container main: restarted 3 times, and not ready: it last ended with Error (exit code 2): no such flag"},
		"not ready yet":           {ready: unready, container: corev1.ContainerStatus{State: running}, progressing: "it is not ready: main is unready"},
		"ready after a crash":     {container: corev1.ContainerStatus{State: running, Ready: true, LastTerminationState: ended}},
		"all containers finished": {ready: completed, container: corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
	} {
		test.container.Name = "main"
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{test.ready}}}
		if test.init {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{test.container}
		} else {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{test.container}
		}
		if got := runningPod(pod); got.Unhealthy != test.unhealthy || got.Progressing != test.progressing {
			t.Errorf("%s: unhealthy %q, progressing %q", name, got.Unhealthy, got.Progressing)
		}
	}
}

// TestDeletionOfNamespace checks that a Namespace that is stuck names its cause.
func TestDeletionOfNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		namespace corev1.Namespace
		want      string
	}{
		"nothing known": {corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}}, "it is being deleted"},
		"conditions": {corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
			{Type: "NamespaceDeletionDiscoveryFailure", Status: "True", Message: "Discovery failed for some groups."},
			{Type: "NamespaceDeletionContentFailure", Status: "False", Message: "All content successfully deleted."},
			{Type: "NamespaceFinalizersRemaining", Status: "True", Message: "Some content has finalizers remaining: a in 1 resource instances"},
		}}}, "it is being deleted: Discovery failed for some groups; Some content has finalizers remaining: a in 1 resource instances"},
		"finalizer in its spec": {corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes", "example.org/a"}}},
			"its finalizer example.org/a in spec.finalizers blocks the deletion"},
		"finalizer in its metadata": {corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"example.org/b"}}},
			"its finalizers block the deletion: example.org/b"},
	} {
		test.namespace.DeletionTimestamp = ptr.To(metav1.Now())
		object := Object{Presence: live.Present, Meta: test.namespace.ObjectMeta, Body: &test.namespace}
		if got := object.Why(); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
