package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// helperEnv makes the test binary a helper of TestKilled.
const helperEnv = "CONTROLPLANE_TEST_HELPER"

var shared = Shared{Options: Options{ControllerManager: true, Scheduler: true, Nodes: 2, AvailableAtOnce: true}}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper() // see TestKilled
	}
	os.Exit(shared.Run(m))
}

func TestServerVersionIsThePinnedOne(t *testing.T) {
	cp := shared.Get(t)
	if os.Getenv(assetsEnv) != "" {
		t.Skipf("%s determines the version", assetsEnv)
	}
	goMod, err := os.ReadFile("binaries/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(goMod)
	if pinned == nil {
		t.Fatal("binaries/go.mod does not require k8s.io/kubernetes")
	}

	got, err := discovery.NewDiscoveryClientForConfigOrDie(cp.Config()).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got.GitVersion != string(pinned[1]) {
		t.Errorf("server version %s, want %s", got.GitVersion, pinned[1])
	}
	parsed, err := version.ParseSemantic(got.GitVersion)
	if err != nil {
		t.Fatal(err)
	}
	if majorMinor := fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor()); got.Major+"."+got.Minor != majorMinor {
		t.Errorf("major and minor version %s.%s, want %s", got.Major, got.Minor, majorMinor)
	}
}

func TestWorkloadsRunOnSimulatedNodes(t *testing.T) {
	c, namespace := newNamespace(t)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: namespace} }
	labels := map[string]string{"app": "test"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/image:1"}}},
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta("deployment"), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template, MinReadySeconds: 500,
	}}
	daemonSet := &appsv1.DaemonSet{ObjectMeta: meta("daemonset"), Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}
	jobTemplate := *template.DeepCopy()
	jobTemplate.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: meta("job"), Spec: batchv1.JobSpec{Template: jobTemplate}}
	for _, object := range []client.Object{deployment, daemonSet, job} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "the workloads have their pods", func(ctx context.Context) error {
		for _, object := range []client.Object{deployment, daemonSet, job} {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		if deployment.Status.AvailableReplicas == 2 && daemonSet.Status.NumberReady == 2 && job.Status.Succeeded == 1 {
			return nil
		}
		return fmt.Errorf("deployment: %+v, daemon set: %+v, job: %+v", deployment.Status, daemonSet.Status, job.Status)
	})
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Spec.ServiceAccountName != "default" {
			t.Errorf("pod %s has the service account %q, want default", pod.Name, pod.Spec.ServiceAccountName)
		}
	}
}

func TestGarbageIsCollected(t *testing.T) {
	c, namespace := newNamespace(t)
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	}
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		owner := configMap("owner-" + strings.ToLower(string(propagation)))
		if err := c.Create(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		owned := configMap("owned-" + strings.ToLower(string(propagation)))
		owned.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: ptr.To(true),
		}}
		if err := c.Create(t.Context(), owned); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), owner, client.PropagationPolicy(propagation)); err != nil {
			t.Fatal(err)
		}
		eventuallyGone(t, c, owned)
		eventuallyGone(t, c, owner)
	}
}

func TestNamespaceDeletionFinishes(t *testing.T) {
	c, namespace := newNamespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret", Namespace: namespace}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, c, secret)
	eventuallyGone(t, c, object)
}

func TestDirAuditLogAndArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	dir := filepath.Join(t.TempDir(), "controlplane")
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	cp, err := Start(t.Context(), Options{
		Dir: dir, AuditLog: auditLog, APIServerArgs: map[string][]string{"advertise-address": {"192.0.2.9"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	process, err := cp.StartProcess("sleep", "sleep", "600")
	if err != nil {
		t.Fatal(err)
	}

	config, err := clientcmd.RESTConfigFromKubeConfig(cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = "audited"
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	endpoints := &corev1.Endpoints{} //nolint:staticcheck // kube-apiserver itself still maintains it
	eventually(t, "kube-apiserver advertises the address given to it", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, endpoints); err != nil {
			return err
		}
		if got := endpoints.Subsets[0].Addresses[0].IP; got != "192.0.2.9" {
			return fmt.Errorf("it advertises %s", got)
		}
		return nil
	})

	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	if err := cp.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
	select {
	case <-process.Done():
	default:
		t.Error("a process runs after Stop")
	}
	if audited := auditedRequests(t, auditLog, "audited"); audited == 0 {
		t.Error("the audit log has no request of this test")
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "already holds the data") {
		t.Errorf("a start in a used directory: %v", err)
	}
}

func TestStartExplainsFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	_, err := Start(t.Context(), Options{APIServerArgs: map[string][]string{"no-such-flag": {"1"}}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("an unknown flag: %v", err)
	}
}

func TestMissingProgram(t *testing.T) {
	b := &binaries{dirs: []string{t.TempDir()}}
	_, err := b.find("etcd")
	if err == nil || !strings.Contains(err.Error(), "run `make controlplane`") {
		t.Errorf("a missing program: %v", err)
	}
}

// newNamespace creates a namespace and waits until pods can be created in it.
func newNamespace(t *testing.T) (client.Client, string) {
	t.Helper()
	cp := shared.Get(t)
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has its default service account", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{})
	})
	return c, namespace.Name
}

func auditedRequests(t *testing.T, path, userAgent string) int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var event struct{ UserAgent string }
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			t.Fatalf("%v in %s", err, scanner.Text())
		}
		if event.UserAgent == userAgent {
			count++
		}
	}
	return count
}

func eventuallyGone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s is deleted", object, object.GetName()), func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("it still exists: %v", object)
		}
		return client.IgnoreNotFound(err)
	})
}

func eventually(t *testing.T, reason string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", reason, err, last)
	}
}
