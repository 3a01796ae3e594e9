package extension

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/extension/controlplane"
	"github.com/trellis-k8s/trellis/pkg/extension/webhook"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// cloud simulates an infrastructure with its own cloud-controller-manager.
type cloud struct{ controlplane.NoEnsurer }

func external(deployment *appsv1.Deployment) error {
	container := controlplane.Container(&deployment.Spec.Template.Spec, strings.TrimPrefix(deployment.Name, "virtual-garden-"))
	if container == nil {
		return fmt.Errorf("Deployment %s has no container of its name", deployment.Name)
	}
	controlplane.SetContainerFlag(container, "--cloud-provider", "external")
	return nil
}

func (cloud) EnsureKubeAPIServerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	return external(wanted)
}

func (cloud) EnsureKubeControllerManagerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	return external(wanted)
}

func (cloud) EnsureKubeSchedulerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	return external(wanted)
}

func (cloud) EnsureKubeletUnit(_ context.Context, _ controlplane.Context, _ string, wanted, _ []controlplane.UnitOption) ([]controlplane.UnitOption, error) {
	return controlplane.SetKubeletFlag(wanted, "--cloud-provider", "external"), nil
}

func (cloud) EnsureKubeletConfiguration(_ context.Context, _ controlplane.Context, version string, wanted, _ *unstructured.Unstructured) error {
	wanted.Object["failSwapOn"] = false
	wanted.Object["providerID"] = "cloud://" + version
	return nil
}

func (cloud) KubeletCloudProviderConfig(context.Context, controlplane.Context, string) (string, error) {
	return "[Global]\n", nil
}

// exposure annotates the Service for the infrastructure's load balancers.
type exposure struct{ controlplane.NoEnsurer }

func (exposure) EnsureKubeAPIServerService(_ context.Context, _ controlplane.Context, wanted, _ *corev1.Service) error {
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, "cloud.example.org/load-balancer", "internal")
	return nil
}

const (
	extensionNamespace = "extension-provider-cloud"
	configurationName  = "gardener-extension-provider-cloud"
)

// startWebhooks serves the webhooks until the returned function is called.
func (w *world) startWebhooks() (stop func()) {
	w.Helper()
	mgr, _ := w.manager()
	port := kit.FreePort(w)
	server, err := webhook.AddToManager(w.Context(), mgr, []webhook.Webhook{
		controlplane.Shoots(cloud{}, controlplane.Options{Provider: "cloud", Reader: mgr.GetClient()}),
		controlplane.Exposure(exposure{}, controlplane.Options{Provider: "cloud", Reader: mgr.GetClient()}),
		{Name: "nodes", Target: webhook.TargetShoot, Handler: controlplane.Shoots(cloud{}, controlplane.Options{}).Handler,
			Rules: []admissionregistrationv1.RuleWithOperations{webhook.Writes("", "v1", "nodes")}},
	}, webhook.Options{
		Name: "provider-cloud", Namespace: extensionNamespace, Host: "127.0.0.1", Port: port, URL: fmt.Sprintf("https://localhost:%d", port),
	})
	kit.Must(w, err)
	stop = kit.Run(w, mgr)
	kit.Eventually(w, "the webhooks are registered, and the API server trusts their authority", func() string {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := w.client.Get(w.Context(), client.ObjectKey{Name: configurationName}, configuration); err != nil {
			return err.Error()
		}
		for _, one := range configuration.Webhooks {
			if len(one.ClientConfig.CABundle) == 0 || one.ClientConfig.URL == nil || !strings.Contains(*one.ClientConfig.URL, fmt.Sprint(port)) {
				return "the webhook " + one.Name + " cannot be reached"
			}
		}
		return kit.TextOf(server.Check(nil))
	})
	configurations, err := server.ShootConfigurations()
	kit.Must(w, err)
	if len(configurations) != 1 || configurations[0].GetName() != configurationName+"-shoot" {
		w.Errorf("the configurations of Shoots are %+v", configurations)
	}
	return stop
}

const controlPlaneObject = `
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: %[3]s
  name: %[1]s
  labels: {provider.extensions.gardener.cloud/mutated-by-controlplane-webhook: "true"}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - {name: %[1]s, image: "registry.example.org/kubernetes:%[2]s", command: [%[1]s, --kubeconfig=/etc/kubeconfig]}
---`

// deploy writes the manifests of a control plane, as gardenlet would.
func (w *world) deploy(namespace, version string) {
	w.Helper()
	var text strings.Builder
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		fmt.Fprintf(&text, controlPlaneObject, name, version, namespace)
	}
	fmt.Fprintf(&text, `
apiVersion: v1
kind: Service
metadata:
  namespace: %s
  name: kube-apiserver
  labels: {provider.extensions.gardener.cloud/mutated-by-controlplane-webhook: "true"}
spec: {selector: {app: kube-apiserver}, ports: [{port: 443}]}
`, namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "control-plane-" + version}, Data: map[string][]byte{"objects.yaml": []byte(text.String())}}
	kit.Must(w, w.client.Create(w.Context(), secret))
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "control-plane"}}
	mr.Spec = resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To(bundles.ClassSeed), SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: secret.Name}}}
	if err := w.client.Create(w.Context(), mr); err != nil {
		kit.Change(w, w.client, mr, func() { mr.Spec.SecretRefs[0].Name = secret.Name })
	}
}

// eventuallyApplied waits until the condition ResourcesApplied has a status and its message contains a text.
func (w *world) eventuallyApplied(namespace string, status resourcesv1alpha1.ConditionStatus, names string) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("ResourcesApplied is %s and names %q", status, names), func() string {
		mr := &resourcesv1alpha1.ManagedResource{}
		kit.Must(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "control-plane"}, mr))
		applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
		if applied.Status != status || !strings.Contains(applied.Message, names) || mr.Status.ObservedGeneration != mr.Generation {
			return fmt.Sprintf("%+v", applied)
		}
		return ""
	})
}

// images returns the version of each Deployment of a control plane.
func (w *world) images(namespace string) map[string]string {
	w.Helper()
	var list appsv1.DeploymentList
	kit.Must(w, w.client.List(w.Context(), &list, client.InNamespace(namespace)))
	images := map[string]string{}
	for _, deployment := range list.Items {
		container := deployment.Spec.Template.Spec.Containers[0]
		if !slices.Contains(container.Command, "--cloud-provider=external") {
			w.Errorf("the command of %s is %v", deployment.Name, container.Command)
		}
		_, images[deployment.Name], _ = strings.Cut(container.Image, ":")
	}
	return images
}

// TestControlPlaneWebhook checks that three Deployments of a Shoot get a flag, and the Service an annotation. Without the
// webhook, no part of the control plane is written, and the condition of the ManagedResource names the webhook. Other
// namespaces are not affected.
func TestControlPlaneWebhook(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: extensionNamespace}})
	const shoot, other = "shoot--dev--cloud", "shoot--dev--other"
	w.shoot(shoot, map[string]string{constants.LabelShootProvider: "cloud", constants.LabelSeedProvider: "cloud"})
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other, Labels: map[string]string{constants.LabelShootProvider: "other"}}})
	t.Cleanup(func() {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: configurationName}}
		kit.Must(t, client.IgnoreNotFound(w.client.Delete(context.Background(), configuration)))
	})
	parts, err := inprocess.ResourceManager{
		Scheme: w.scheme, Source: w.cp.Config(), Target: w.cp.Config(), Namespaces: []string{shoot, other}, Class: bundles.ClassSeed,
	}.New(t.Context())
	kit.Must(t, err)
	kit.Run(t, parts.Manager)

	stop := w.startWebhooks()
	w.deploy(shoot, "v1")
	w.eventuallyApplied(shoot, resourcesv1alpha1.ConditionTrue, "")
	if images := w.images(shoot); len(images) != 3 || images["kube-apiserver"] != "v1" {
		t.Errorf("the Deployments have %v", images)
	}
	service := &corev1.Service{}
	kit.Must(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: shoot, Name: "kube-apiserver"}, service))
	if service.Annotations["cloud.example.org/load-balancer"] != "internal" {
		t.Errorf("the annotations of the Service are %v", service.Annotations)
	}
	w.nodes(shoot)
	w.repaired()

	stop()
	w.deploy(shoot, "v2")
	w.eventuallyApplied(shoot, resourcesv1alpha1.ConditionFalse, "controlplane.cloud.extensions.gardener.cloud")
	for name, version := range w.images(shoot) {
		if version != "v1" {
			t.Errorf("without the webhook, Deployment %s was written with %s", name, version)
		}
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shoot, Name: "unlabelled"}}
	kit.Must(t, w.client.Create(t.Context(), config))
	elsewhere := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "kube-apiserver",
		Labels: map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true"}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
	kit.Must(t, w.client.Create(t.Context(), elsewhere))

	stop = w.startWebhooks()
	w.eventuallyApplied(shoot, resourcesv1alpha1.ConditionTrue, "")
	if images := w.images(shoot); images["kube-scheduler"] != "v2" {
		t.Errorf("the Deployments have %v", images)
	}
	stop()
}

// repaired deletes the webhook configuration by hand. It is created again, because control planes would be written
// unchanged without it.
func (w *world) repaired() {
	w.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKey{Name: configurationName}, configuration))
	before := configuration.UID
	if len(configuration.OwnerReferences) != 1 || configuration.OwnerReferences[0].Name != extensionNamespace {
		w.Errorf("the owners of the configuration are %+v", configuration.OwnerReferences)
	}
	kit.Must(w, w.client.Delete(w.Context(), configuration))
	kit.Eventually(w, "the configuration is written again, with the authority", func() string {
		again := &admissionregistrationv1.MutatingWebhookConfiguration{}
		err := w.client.Get(w.Context(), client.ObjectKey{Name: configurationName}, again)
		if err != nil || again.UID == before || len(again.Webhooks) != 2 || len(again.Webhooks[0].ClientConfig.CABundle) == 0 {
			return fmt.Sprintf("%v, %+v", err, again.Webhooks)
		}
		return ""
	})
}

// nodes checks the changes of the configuration of nodes.
func (w *world) nodes(shoot string) {
	w.Helper()
	config := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: shoot, Name: "pool", Labels: map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true", constants.LabelWorkerPool: "pool"},
	}}
	config.Spec.Type, config.Spec.Purpose = "local", extensionsv1alpha1.OperatingSystemConfigPurposeReconcile
	config.Spec.Units = []extensionsv1alpha1.Unit{{Name: "kubelet.service", Content: ptr.To(
		"[Unit]\nDescription=kubelet\n\n[Service]\nExecStart=/opt/bin/kubelet \\\n    --config=/var/lib/kubelet/config/kubelet \\\n    --v=2\nRestart=always\n")}}
	config.Spec.Files = []extensionsv1alpha1.File{
		controlplane.TextFile("/var/lib/kubelet/config/kubelet", 0o644, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfromTheFuture: 1\n"),
	}
	kit.Must(w, w.client.Create(w.Context(), config))
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(config), config))
	unit := *config.Spec.Units[0].Content
	if !strings.Contains(unit, "--config=/var/lib/kubelet/config/kubelet") || !strings.Contains(unit, "--cloud-provider=external") || !strings.Contains(unit, "Restart=always") {
		w.Errorf("the unit is %s", unit)
	}
	texts := map[string]string{}
	for _, file := range config.Spec.Files {
		text, err := base64.StdEncoding.DecodeString(file.Content.Inline.Data)
		kit.Must(w, err)
		texts[file.Path] = string(text)
	}
	if text := texts["/var/lib/kubelet/config/kubelet"]; !strings.Contains(text, "failSwapOn: false") || !strings.Contains(text, "fromTheFuture: 1") {
		w.Errorf("the configuration of kubelet is %s", text)
	}
	if texts["/var/lib/kubelet/cloudprovider.conf"] != "[Global]\n" {
		w.Errorf("the files are %v", texts)
	}
}
