package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
)

const resourceManager = "gardener-resource-manager"

// TestResourceManager installs the resource-manager with its chart and image, and makes it apply real workloads.
func TestResourceManager(t *testing.T) {
	c := onBase(t)
	must(t, resourcesv1alpha1.AddToScheme(c.Scheme()))
	restrict := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	must(t, c.Patch(c.ctx, restrict, client.RawPatch("application/merge-patch+json", []byte(
		`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`))))
	c.install()
	c.rolledOut(resourceManager)

	t.Run("probes and metrics", func(t *testing.T) { c.in(t).testServers() })
	t.Run("webhook", func(t *testing.T) { c.in(t).testWebhook() })
	t.Run("workloads", func(t *testing.T) {
		for name, test := range workloads {
			t.Run(name, func(t *testing.T) {
				w := onBase(t)
				test(w)
			})
		}
	})
	t.Run("leader", func(t *testing.T) { c.in(t).testLeader() })
}

func (c *cluster) install() {
	c.t.Helper()
	repository, tag, _ := strings.Cut(c.image("resource-manager"), ":")
	c.helm("resource-manager", generate.Chart, c.namespace, fmt.Sprintf(`
image: {repository: %q, tag: %q}
config: {webhooks: {seccompProfile: {enabled: true}}, controllers: {health: {syncPeriod: 15s}}}`, repository, tag))
}

// helm installs a chart of the repository until the test ends.
func (c *cluster) helm(release, directory, namespace, values string) {
	c.t.Helper()
	chart, err := generate.LoadFrom(filepath.Join(base.Root, directory))
	must(c.t, err)
	content := map[string]any{}
	must(c.t, yaml.Unmarshal([]byte(values), &content))
	config, err := base.Helm(namespace)
	must(c.t, err)
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.WaitStrategy, install.Timeout = release, namespace, kube.HookOnlyStrategy, timeout
	install.TakeOwnership = true // of definitions that an earlier test installed
	_, err = install.Run(chart, content)
	must(c.t, err)
	c.t.Cleanup(func() {
		uninstall := action.NewUninstall(config)
		uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, timeout
		_, err := uninstall.Run(release)
		must(c.t, err)
	})
}

func (c *cluster) rolledOut(name string) {
	c.t.Helper()
	c.eventually("Deployment "+name, func() error {
		d := &appsv1.Deployment{}
		if err := c.Get(c.ctx, c.key(name), d); err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

// in returns the same cluster for a subtest.
func (c *cluster) in(t *testing.T) *cluster { //nolint:thelper // it does not fail the test
	own := *c
	own.t = t
	return &own
}

// testServers checks that the kubelet has found the Pods ready, so its probes pass the NetworkPolicy, and that allowed
// Pods get metrics.
func (c *cluster) testServers() {
	pods := &corev1.PodList{}
	must(c.t, c.List(c.ctx, pods, client.InNamespace(c.namespace)))
	if len(pods.Items) != 2 {
		c.t.Fatalf("the resource-manager has %d Pods, want 2", len(pods.Items))
	}
	for _, p := range pods.Items {
		metrics, err := c.tryKubectl("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", c.namespace, p.Name))
		if err != nil || !strings.Contains(metrics, "process_start_time_seconds") {
			c.t.Errorf("the metrics of %s: %v, %d bytes", p.Name, err, len(metrics))
		}
		if logs := c.kubectl("logs", p.Name); logs == "" {
			c.t.Errorf("the log of %s is empty", p.Name)
		}
	}
}

// testWebhook checks that the API server reaches the webhook through its Service, and that the webhook changes Pods.
func (c *cluster) testWebhook() {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "webhook-", Labels: map[string]string{"gardener.cloud/role": "test"}}}
	must(c.t, c.Create(c.ctx, namespace))
	c.t.Cleanup(func() { must(c.t, c.Delete(context.Background(), namespace)) })
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "plain"}, Spec: pod(c.container("sleep"))}
	c.eventually("a Pod is admitted", func() error { return c.Create(c.ctx, p) })
	if p.Spec.SecurityContext == nil || p.Spec.SecurityContext.SeccompProfile == nil {
		c.t.Errorf("the webhook added no seccomp profile: %+v", p.Spec.SecurityContext)
	}
}

// testLeader kills the leader, and checks that the other replica takes over and continues the work.
func (c *cluster) testLeader() {
	lease := &coordinationv1.Lease{}
	holder := func() string {
		must(c.t, c.Get(c.ctx, c.key(resourceManager), lease))
		if lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	before := holder()
	leader, _, _ := strings.Cut(before, "_")
	began := time.Now()
	c.kubectl("delete", "pod", leader, "--force", "--grace-period=0")
	c.eventually("another replica leads", func() error {
		if now := holder(); now == before || now == "" {
			return fmt.Errorf("the leader is %q", now)
		}
		return nil
	})
	c.t.Logf("%s leads after %s, previously %s", holder(), time.Since(began).Round(time.Millisecond), before)
	c.manage("after", "", configMap)
	c.condition("after", resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, "")
	must(c.t, c.Delete(c.ctx, &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "after"}}))
	c.gone("after")
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: b}\n"
