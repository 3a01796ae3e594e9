package health

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// uncounted is a control plane on which Deployments do not report the number of their terminating Pods.
var uncounted struct {
	once         sync.Once
	controlPlane *controlplane.ControlPlane
	err          error
}

func uncountedControlPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	uncounted.once.Do(func() {
		off := []string{"DeploymentReplicaSetTerminatingReplicas=false"}
		uncounted.controlPlane, uncounted.err = controlplane.Start(context.Background(), controlplane.Options{
			ControllerManager: true, Scheduler: true, Nodes: 1,
			APIServerArgs:         map[string][]string{"feature-gates": off},
			ControllerManagerArgs: []string{"--feature-gates=" + off[0]},
		})
	})
	must(t, uncounted.err)
	return uncounted.controlPlane
}

// stopUncounted stops that control plane if it was started, and returns an exit code.
func stopUncounted() int {
	if uncounted.controlPlane == nil {
		return 0
	}
	if err := uncounted.controlPlane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestOldPods keeps an old Pod of a Deployment whose rollout is otherwise complete.
func TestOldPods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		controlPlane func(*testing.T) *controlplane.ControlPlane
		tells        bool
	}{
		"that the Deployment counts":         {func(t *testing.T) *controlplane.ControlPlane { t.Helper(); return shared.Get(t) }, true},
		"that the Deployment does not count": {uncountedControlPlane, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixtureOn(t, test.controlPlane(t))
			h := f.follow(managed)
			f.manage(managed, workload("Deployment", "replicas: 2", ""))
			f.eventuallySays(managed, isHealthy, isRolledOut)
			if _, tells := part(f.get(deployment, "app"), "status")["terminatingReplicas"]; tells != test.tells {
				t.Fatalf("the Deployment reports terminating Pods: %t, want %t", tells, test.tells)
			}
			f.holdPod()
			f.update(managed, workload("Deployment", "replicas: 2", "hostname: new"))
			f.eventuallySays(managed, isHealthy, progressing("DeploymentProgressing", "there are still non-terminated old pods"))
			f.releasePods()
			f.eventuallySays(managed, isHealthy, isRolledOut)
			f.eventually("no Pods are watched", func() string {
				if watches := f.manager.target.Watching(f.namespace, "pods"); len(watches) > 0 {
					return sprint(watches)
				}
				return ""
			})
			if watched := f.manager.target.Watched("/namespaces/" + f.namespace + "/pods"); watched == test.tells {
				t.Errorf("Pods were watched: %t, want %t", watched, !test.tells)
			}
			t.Logf("the history:\n%s", h)
		})
	}
}

// TestOldPodsForbidden keeps an old Pod where the resource-manager may not list Pods. Only the Deployment's status counts.
func TestOldPodsForbidden(t *testing.T) {
	t.Parallel()
	cp := uncountedControlPlane(t)
	f := newFixtureOn(t, cp, func(r *inprocess.ResourceManager) { r.Target.Impersonate.UserName = "without-pods" })
	all := []string{"*"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "without-pods"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps", "autoscaling", "apiextensions.k8s.io"}, Resources: all, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "services", "events"}, Verbs: all},
		{NonResourceURLs: all, Verbs: all},
	}}
	must(t, f.client.Create(f.ctx, role))
	must(t, f.client.Create(f.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "without-pods"}},
	}))
	f.manage(managed, workload("Deployment", "replicas: 2", ""))
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.holdPod()
	f.update(managed, workload("Deployment", "replicas: 2", "hostname: new"))
	f.eventually("the rollout is complete", func() string {
		status := part(f.get(deployment, "app"), "status")
		if status["observedGeneration"] == int64(2) && status["updatedReplicas"] == int64(2) && status["availableReplicas"] == int64(2) && status["replicas"] == int64(2) {
			return ""
		}
		return sprint(status)
	})
	f.eventuallySays(managed, isHealthy, isRolledOut)
	if !slices.ContainsFunc(f.pods(), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }) {
		t.Error("the old Pod no longer exists, so the test has not shown that it is ignored")
	}
	f.releasePods()
}

var podKind = kindOf("v1", "Pod")

const heldPod = `{"metadata": {"finalizers": %s}}`

// holdPod keeps a Pod when it is deleted, by a finalizer.
func (f *fixture) holdPod() {
	f.Helper()
	pods := f.pods()
	if len(pods) == 0 {
		f.Fatal("the namespace contains no Pods")
	}
	f.patch(podKind, pods[0].Name, fmt.Sprintf(heldPod, `["example.org/held"]`))
}

// releasePods removes the finalizers of the Pods.
func (f *fixture) releasePods() {
	f.Helper()
	for _, pod := range f.pods() {
		if len(pod.Finalizers) > 0 {
			f.patch(podKind, pod.Name, fmt.Sprintf(heldPod, "null"))
		}
	}
}

func (f *fixture) pods() []corev1.Pod {
	f.Helper()
	list := &corev1.PodList{}
	must(f, f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
	return list.Items
}
