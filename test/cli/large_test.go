package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/top"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var large = flag.Int("large", 0, "measure get and tree with that many ManagedResources of 10 objects each")

// TestLarge measures how long the read commands take with many ManagedResources, on a separate control plane without controllers:
// `go test ./test/cli -run TestLarge -large 3000 -v -timeout 1h`.
func TestLarge(t *testing.T) {
	if *large == 0 {
		t.Skip("takes minutes: -large 3000")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { _ = cp.Stop() })
	_, err = envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{Paths: []string{"../../config/crd"}, ErrorIfPathMissing: true})
	kit.Must(t, err)
	config := cp.Config()
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: console.Scheme()})
	kit.Must(t, err)
	fill(t, c)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, os.WriteFile(kubeconfig, cp.Kubeconfig(), 0o600))
	measureTop(t, kubeconfig)
	for _, args := range [][]string{{"get", "-A"}, {"tree", "-A"}, {"tree", "set-0", "-n", "large-0"}, {"why", "-A"}, {"get", "-A", "-o", "json"}} {
		var requests kit.Requests
		started := time.Now()
		out := execute(call{args: append([]string{"--kubeconfig", kubeconfig}, args...), wrap: func(config *rest.Config) *rest.Config {
			config.Wrap(requests.Wrap)
			return config
		}})
		if out.code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, out.code, out.err)
		}
		t.Logf("%-24s %6.2f s, %d requests, %d lines", strings.Join(args, " "), time.Since(started).Seconds(), len(requests.All()), strings.Count(out.out, "\n"))
	}
}

// measureTop measures how long top takes until it shows all ManagedResources, and how much memory it retains.
func measureTop(t *testing.T, kubeconfig string) {
	t.Helper()
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	var requests kit.Requests
	before, started := heap(), time.Now()
	w := &world{kubeconfig: kubeconfig}
	run := w.startTop(t.Context(), t, top.Options{Choice: console.Choice{AllNamespaces: true}}, func(c *console.Console) {
		c.Wrap = func(config *rest.Config) *rest.Config {
			config.Wrap(requests.Wrap)
			return config
		}
	})
	run.shows(fmt.Sprintf("%d Ready", *large))
	shown := time.Since(started)
	kept := heap()
	pressed := time.Now()
	run.press(tcell.KeyEnd)
	run.shows(fmt.Sprintf("%d of %d", *large, *large))
	t.Logf("%-24s %6.2f s, %d requests, %.1f MiB kept; the last one %d ms after its key", "top -A", shown.Seconds(), len(requests.All()),
		float64(max(kept, before)-before)/(1<<20), time.Since(pressed).Milliseconds())
	run.press("q")
	kit.Must(t, run.ends())
}

// fill creates ManagedResources with their objects as a resource-manager leaves them.
func fill(t *testing.T, c client.Client) {
	t.Helper()
	const perNamespace = 10
	var group errgroup.Group
	group.SetLimit(24)
	for i := 0; i*perNamespace < *large; i++ {
		kit.Must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: named("", fmt.Sprintf("large-%d", i))}))
	}
	for i := range *large {
		group.Go(func() error { return fillOne(t, c, fmt.Sprintf("large-%d", i/perNamespace), fmt.Sprintf("set-%d", i)) })
	}
	kit.Must(t, group.Wait())
}

func fillOne(t *testing.T, c client.Client, namespace, name string) error {
	t.Helper()
	mr := managedResource(namespace, name)
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: name}}
	if err := c.Create(t.Context(), mr); err != nil {
		return err
	}
	now := metav1.Now()
	for i, status := range []resourcesv1alpha1.ConditionStatus{"True", "True", "False"} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: resourcesv1alpha1.ConditionTypes()[i], Status: status, Reason: "Reason", Message: "All resources are as they should be.",
			LastTransitionTime: now, LastUpdateTime: now,
		})
	}
	mr.Status.ObservedGeneration = mr.Generation
	labels := map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"}
	for _, obj := range objectsOf(namespace, name) {
		obj.SetLabels(labels)
		obj.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: namespace + "/" + name, resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.Description})
		gvk, err := apiutil.GVKForObject(obj, console.Scheme())
		if err != nil {
			return err
		}
		if err := c.Create(t.Context(), obj); err != nil {
			return err
		}
		mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: obj.GetName(), Labels: labels, Digest: "12345678901.12345678901",
		})
		if deployment, is := obj.(*appsv1.Deployment); is {
			deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, TerminatingReplicas: ptr.To[int32](0), Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			}}
			if err := c.Status().Update(t.Context(), deployment); err != nil {
				return err
			}
		}
	}
	return c.Status().Update(t.Context(), mr)
}

// objectsOf returns the typical objects of a component.
func objectsOf(namespace, name string) []client.Object {
	meta := named(namespace, name)
	labels := map[string]string{"app": name}
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"password": name}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "registry.example/main:1"}},
			}},
		}},
	}
	for i := range 4 {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: named(namespace, fmt.Sprintf("%s-%d", name, i)), Data: map[string]string{"value": name}})
	}
	return objects
}
