package fleet

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestParts checks the lines about a Shoot with two nodes. One of them is not ready yet.
func TestParts(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	after := func(seconds int) metav1.Time {
		return metav1.NewTime(began.Add(time.Duration(seconds) * time.Second))
	}
	pod := func(name string, created, ready int) corev1.Pod {
		made := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: after(created)}}
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: after(ready)}}
		made.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(ready)}}}}
		return made
	}
	node := func(created, ready int) corev1.Node {
		made := corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: after(created)}}
		if ready > 0 {
			made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: after(ready)}}
		}
		return made
	}
	one := life{
		shoot: &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: after(0)}}, web: &appsv1.Deployment{}, ask: &batchv1.Job{},
		control:  []corev1.Pod{pod("etcd-main-0", 2, 9), pod("etcd-events-0", 2, 8), pod("kube-apiserver-1", 3, 20)},
		machines: []corev1.Pod{pod("one", 22, 24), pod("two", 22, 25)}, nodes: []corev1.Node{node(40, 45), node(41, 50)},
	}
	want := []string{
		"    9  (+9)  etcd is ready", "   20  (+11)  the API server is ready", "   22  (+2)  the machines are requested", "   25  (+3)  the machines have started",
		"   41  (+16)  kubelets have registered the nodes", "   45  (+4)  the first node is ready", "   50  (+5)  all nodes are ready",
	}
	one.web.CreationTimestamp, one.ask.Status.CompletionTime = after(55), &metav1.Time{Time: after(60).Time}
	want = append(want, "   55  (+5)  the user's Deployment is created", "   60  (+5)  another Pod got a response of the Service")
	if got := one.parts(); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	one.nodes = []corev1.Node{node(40, 45), node(41, 0)}
	if got := one.parts(); slices.Contains(got, want[5]) || slices.Contains(got, want[6]) {
		t.Errorf("a node that is not ready counts: %q", got)
	}
	if got := (life{shoot: one.shoot, web: &appsv1.Deployment{}, ask: &batchv1.Job{}}).parts(); len(got) > 0 {
		t.Errorf("before anything exists: %q", got)
	}
}
