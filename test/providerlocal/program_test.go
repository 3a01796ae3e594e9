package providerlocal

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/cmd/provider-local/app"
	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// account is the ServiceAccount of the chart.
const account = "gardener-extension-provider-local"

// TestProgram runs the program with the permissions of its chart. It reconciles objects, renews its heartbeat, and changes
// control planes through its webhooks. While it is not running, control planes cannot be written.
func TestProgram(t *testing.T) {
	w := newWorld(t)
	w.stop()
	namespace := kit.NewNamespace(t, w.Client, "extension-", nil)
	kubeconfig := w.rights(namespace)
	program, err := controlplane.BuildProgram[app.Program]()
	kit.Must(t, err)
	if output, err := exec.CommandContext(t.Context(), program, "controllers", "--log-level=x").CombinedOutput(); err == nil ||
		!strings.Contains(string(output), "--namespace is not set") || !strings.Contains(string(output), "--log-level") {
		t.Errorf("wrong flags: %v, %s", err, output)
	}
	health, port := kit.FreePort(t), kit.FreePort(t)
	command, log := exec.CommandContext(t.Context(), program, "controllers", "--kubeconfig", kubeconfig, "--namespace", namespace, "--simulate-machines",
		fmt.Sprintf("--health-bind-address=127.0.0.1:%d", health), "--metrics-bind-address=0", fmt.Sprintf("--webhook-config-server-port=%d", port),
		fmt.Sprintf("--webhook-config-url=https://localhost:%d", port), "--log-format=text"), &kit.Output{}
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	kit.Must(t, command.Start())
	t.Cleanup(func() {
		if t.Failed() || strings.Contains(log.String(), "forbidden") {
			t.Errorf("log of the program:\n%s", log)
		}
	})
	kit.EventuallyTrue(t, "the program is ready", func() bool { return answers(t, fmt.Sprintf("http://127.0.0.1:%d/readyz", health)) })
	w.found(&coordinationv1.Lease{}, namespace, "gardener-extension-heartbeat")

	object := w.newWorker()
	w.create(object)
	w.succeeded(object, created)
	machines := w.ready(object, 2, "1.0.0")
	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].MachineImage.Version = "1.1.0" })
	w.succeeded(object, reconciled)
	if after := w.ready(object, 2, "1.1.0"); slices.ContainsFunc(after, func(name string) bool { return slices.Contains(machines, name) }) {
		t.Errorf("the machines %v were not replaced: %v", machines, after)
	}
	w.gone(object)
	w.changed(namespace)

	kit.Must(t, command.Process.Signal(os.Interrupt))
	_ = command.Wait()
	err = w.Create(t.Context(), w.deployment("kube-scheduler"))
	if err == nil || !strings.Contains(err.Error(), "controlplane.local.extensions.gardener.cloud") {
		t.Errorf("a control plane is written while the webhook does not respond: %v", err)
	}
	kit.Must(t, w.Delete(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": account},
	}}))
}

// changed creates parts of a control plane, and checks the changes of the webhooks.
func (w *world) changed(namespace string) {
	w.Helper()
	shoot := &corev1.Namespace{}
	kit.Must(w, w.Get(w.Context(), client.ObjectKey{Name: w.shoot}, shoot))
	kit.Change(w, w.Client, shoot, func() {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, constants.LabelShootProvider, "local")
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, constants.LabelSeedProvider, "local")
	})
	w.found(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}}, "", account)
	kit.Eventually(w, "the webhooks change kube-controller-manager", func() string {
		deployment := w.deployment("kube-controller-manager")
		kit.Must(w, client.IgnoreNotFound(w.Delete(w.Context(), deployment.DeepCopy())))
		if err := w.Create(w.Context(), deployment); err != nil {
			return err.Error()
		}
		template := deployment.Spec.Template
		if !slices.Contains(template.Spec.Containers[0].Command, "--cloud-provider=external") || template.Labels["injected-by"] != "provider-local" {
			return fmt.Sprintf("%v, %v", template.Labels, template.Spec.Containers[0].Command)
		}
		return ""
	})
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot, Name: "kube-apiserver", Labels: map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443}}},
	}
	kit.Must(w, w.Create(w.Context(), service))
	if service.Annotations["local.provider.extensions.gardener.cloud/exposure"] != "address" {
		w.Errorf("the Service has the annotations %v", service.Annotations)
	}
	config := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot, Name: "pool", Labels: service.Labels}}
	config.Spec.Type, config.Spec.Purpose = "other", extensionsv1alpha1.OperatingSystemConfigPurposeReconcile
	config.Spec.Files = []extensionsv1alpha1.File{{Path: "/var/lib/kubelet/config/kubelet", Content: extensionsv1alpha1.FileContent{
		Inline: &extensionsv1alpha1.FileContentInline{Data: "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"},
	}}}
	config.Spec.Units = []extensionsv1alpha1.Unit{{Name: "kubelet.service", Content: ptr.To("[Service]\nExecStart=/opt/bin/kubelet\n")}}
	kit.Must(w, w.Create(w.Context(), config))
	if text := config.Spec.Files[0].Content.Inline.Data; !strings.Contains(text, "failSwapOn") {
		w.Errorf("the configuration of kubelet in %s is %q", namespace, text)
	}
}

// deployment returns a Deployment of a control plane.
func (w *world) deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot, Name: name, Labels: map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: name, Image: "registry.example.org/" + name, Command: []string{"/" + name}}},
			}},
		},
	}
}

// rights creates the RBAC objects of the chart, and returns the path of a kubeconfig for its ServiceAccount.
func (w *world) rights(namespace string) string {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	chart, err := generate.LoadFrom(filepath.Join(root, "charts", "provider-local"))
	kit.Must(w, err)
	files, err := generate.Render(chart, namespace, map[string]any{"machines": map[string]any{"simulated": true}})
	kit.Must(w, err)
	for name, text := range files {
		if !strings.HasSuffix(name, "rbac.yaml") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			object := &unstructured.Unstructured{}
			kit.Must(w, yaml.Unmarshal([]byte(document), object))
			w.ensure(object)
			w.Cleanup(func() { _ = w.Delete(w.Context(), object) })
		}
	}
	request := &authenticationv1.TokenRequest{}
	kit.Must(w, w.SubResource("token").Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, request))
	config, err := clientcmd.Load(w.cp.Kubeconfig())
	kit.Must(w, err)
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, request.Status.Token
	}
	file := filepath.Join(w.TempDir(), "kubeconfig")
	kit.Must(w, clientcmd.WriteToFile(*config, file))
	return file
}

// answers reports whether a server on this machine responds with 200.
func answers(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	kit.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK
}
