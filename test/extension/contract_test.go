package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// ensureFlag edits a command line as published provider extensions do: they search one list of strings by prefix, replace the
// flag or merge its comma-separated value, and append it if it is missing.
func ensureFlag(list []string, prefix, value string, merge bool) []string {
	at := slices.IndexFunc(list, func(one string) bool { return strings.HasPrefix(one, prefix) })
	switch {
	case at < 0:
		return append(list, prefix+value)
	case !merge:
		list[at] = prefix + value
	case !slices.Contains(strings.Split(strings.TrimPrefix(list[at], prefix), ","), value):
		list[at] += "," + value
	}
	return list
}

// edit makes the edits of a provider extension to a control plane.
func edit(object client.Object) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		pod := &object.Spec.Template.Spec
		container := &pod.Containers[slices.IndexFunc(pod.Containers, func(one corev1.Container) bool { return one.Name == object.Name })]
		container.Command = ensureFlag(container.Command, "--feature-gates=", "CSIMigrationCloud=true", true)
		if object.Name == "kube-scheduler" {
			return
		}
		if object.Name == "kube-apiserver" {
			container.Command = ensureFlag(container.Command, "--disable-admission-plugins=", "PersistentVolumeLabel", true)
		} else {
			container.Command = ensureFlag(container.Command, "--cloud-provider=", "external", false)
		}
		pod.Volumes = append(slices.DeleteFunc(pod.Volumes, func(one corev1.Volume) bool { return one.Name == "cloud-provider-config" }),
			corev1.Volume{Name: "cloud-provider-config", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		container.VolumeMounts = append(slices.DeleteFunc(container.VolumeMounts, func(one corev1.VolumeMount) bool { return one.Name == "cloud-provider-config" }),
			corev1.VolumeMount{Name: "cloud-provider-config", MountPath: "/etc/kubernetes/cloudprovider"})
		container.Env = []corev1.EnvVar{{Name: "CLOUD_REGION", Value: "north"}}
		metav1.SetMetaDataAnnotation(&object.Spec.Template.ObjectMeta, "checksum/secret-cloudprovider", "1234")
	case *corev1.Service:
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, "cloud.example.org/load-balancer", "internal")
	case *appsv1.StatefulSet:
		pod := &object.Spec.Template.Spec
		if !slices.ContainsFunc(pod.Containers, func(one corev1.Container) bool { return one.Name == "backup-restore" }) {
			pod.Containers = append(pod.Containers, corev1.Container{Name: "backup-restore", Image: "registry.example.org/backup:v1"})
		}
		object.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("fast")
	case *druidv1alpha1.Etcd:
		object.Spec.StorageClass, object.Spec.StorageCapacity = ptr.To(""), ptr.To(resource.MustParse("10Gi"))
		if object.Name == "etcd-main" {
			object.Spec.StorageClass, object.Spec.StorageCapacity = ptr.To("fast"), ptr.To(resource.MustParse("80Gi"))
		}
	}
}

// editing returns the handler of a webhook that edits objects of these kinds.
func editing(w *world) http.Handler {
	hook := &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		var object client.Object
		switch request.Kind.Kind {
		case "Deployment":
			object = &appsv1.Deployment{}
		case "StatefulSet":
			object = &appsv1.StatefulSet{}
		case "Service":
			object = &corev1.Service{}
		case "Etcd":
			object = &druidv1alpha1.Etcd{}
		default:
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("unexpected %s", request.Kind.Kind))
		}
		if err := json.Unmarshal(request.Object.Raw, object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		edit(object)
		changed, err := json.Marshal(object)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, changed)
	})}
	handler, err := admission.StandaloneWebhook(hook, admission.StandaloneOptions{})
	kit.Must(w, err)
	return handler
}

// registerPublished registers the webhooks of a provider extension with the selectors that published ones use.
func (w *world) registerPublished() {
	w.Helper()
	server := kit.ServeWebhooks(w, map[string]http.Handler{"/edit": editing(w)})
	hook := func(name, namespaces string, labelled bool, rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.MutatingWebhook {
		one := admissionregistrationv1.MutatingWebhook{
			Name: name + ".cloud.example.org", ClientConfig: server.ClientConfig("/edit"), Rules: rules,
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{namespaces: "published"}},
		}
		if labelled {
			one.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true"}}
		}
		return one
	}
	writes := func(group, version, kind string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{kind}},
		}
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener-extension-provider-published"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			hook("controlplane", constants.LabelShootProvider, true, writes("apps", "v1", "deployments"), writes("apps", "v1", "statefulsets")),
			hook("exposure", constants.LabelSeedProvider, true, writes("", "v1", "services")),
			hook("seed-provider", constants.LabelSeedProvider, false, writes("druid.gardener.cloud", "v1alpha1", "etcds")),
		},
	}
	w.create(configuration)
	w.Cleanup(func() { kit.Must(w, w.client.Delete(context.Background(), configuration)) })
}

// statefulSet is a StatefulSet as the etcd-operator writes it.
const statefulSet = `
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  namespace: %s
  name: etcd-main
  labels: {provider.extensions.gardener.cloud/mutated-by-controlplane-webhook: "true"}
spec:
  replicas: 0
  serviceName: etcd-main-peer
  selector: {matchLabels: {app: etcd}}
  template:
    metadata: {labels: {app: etcd}}
    spec: {containers: [{name: etcd, image: "registry.example.org/etcd:v1"}]}
  volumeClaimTemplates:
  - metadata: {name: main-etcd}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 25Gi}}}
`

// emitted returns the objects of the golden files of components, without VerticalPodAutoscalers and replicas, in a namespace.
func (w *world) emitted(namespace string, files ...string) string {
	w.Helper()
	var kept []string
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(w.root, "pkg", "component", filepath.FromSlash(file)))
		kit.Must(w, err)
		for document := range strings.SplitSeq(strings.ReplaceAll(string(text), "shoot--dev--one", namespace), "\n---\n") {
			if !strings.Contains(document, "kind: VerticalPodAutoscaler") {
				kept = append(kept, document)
			}
		}
	}
	return strings.ReplaceAll(strings.Join(kept, "\n---\n"), "\n  replicas: 1\n", "\n  replicas: 0\n")
}

// emit writes a ManagedResource of a seed.
func (w *world) emit(namespace, name, content string) *resourcesv1alpha1.ManagedResource {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"objects.yaml": []byte(content)}}
	w.create(secret)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	mr.Spec = resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To(bundles.ClassSeed), SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: name}}}
	w.create(mr)
	return mr
}

// settled waits until ManagedResources are applied and healthy.
func (w *world) settled(all ...*resourcesv1alpha1.ManagedResource) {
	w.Helper()
	for _, mr := range all {
		kit.EventuallyWithin(w, 4*kit.WaitTimeout, "ManagedResource "+mr.Name+" is applied and healthy", func() string {
			kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(mr), mr))
			for _, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
				one := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind)
				if one.Status != resourcesv1alpha1.ConditionTrue || mr.Status.ObservedGeneration != mr.Generation {
					return fmt.Sprintf("%s: %+v", kind, one)
				}
			}
			return ""
		})
	}
}

// edited checks that all objects of a control plane are edited, once, and returns the Deployments by name.
func (w *world) edited(namespace string) map[string]appsv1.Deployment {
	w.Helper()
	deployments := map[string]appsv1.Deployment{}
	var list appsv1.DeploymentList
	kit.Must(w, w.client.List(w.Context(), &list, client.InNamespace(namespace)))
	for _, one := range list.Items {
		deployments[one.Name] = one
		w.checkCommand(one)
	}
	if len(deployments) != 3 {
		w.Errorf("the Deployments are %d", len(deployments))
	}
	set := &appsv1.StatefulSet{}
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-main"}, set))
	if class := ptr.Deref(set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName, ""); class != "fast" || len(set.Spec.Template.Spec.Containers) != 2 {
		w.Errorf("the StatefulSet has the storage class %q and the containers %+v", class, set.Spec.Template.Spec.Containers)
	}
	service, etcd := &corev1.Service{}, &druidv1alpha1.Etcd{}
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "kube-apiserver"}, service))
	if service.Annotations["cloud.example.org/load-balancer"] != "internal" {
		w.Errorf("the Service has the annotations %v", service.Annotations)
	}
	for name, want := range map[string]string{"etcd-main": "fast 80Gi", "etcd-events": " 10Gi"} {
		kit.Must(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, etcd))
		if got := ptr.Deref(etcd.Spec.StorageClass, "none") + " " + etcd.Spec.StorageCapacity.String(); got != want {
			w.Errorf("%s has the storage %q, not %q", name, got, want)
		}
	}
	return deployments
}

// checkCommand checks that a container still starts its program, with all its flags and each edit once.
func (w *world) checkCommand(deployment appsv1.Deployment) {
	w.Helper()
	container := deployment.Spec.Template.Spec.Containers[0]
	line := slices.Concat(container.Command, container.Args)
	if line[0] != "/usr/local/bin/"+deployment.Name || len(line) < 8 {
		w.Errorf("Deployment %s starts %v", deployment.Name, line)
	}
	wanted := []string{"--feature-gates=", "--v=2"}
	switch deployment.Name {
	case "kube-apiserver":
		wanted = append(wanted, "--disable-admission-plugins=", "--etcd-servers=")
	case "kube-controller-manager":
		wanted = append(wanted, "--cloud-provider=external", "--cluster-name=")
	}
	for _, prefix := range wanted {
		var found []string
		for _, one := range line {
			if strings.HasPrefix(one, prefix) {
				found = append(found, one)
			}
		}
		if len(found) != 1 {
			w.Errorf("Deployment %s has the flags %v that start with %s", deployment.Name, found, prefix)
		}
	}
	mounts := slices.DeleteFunc(slices.Clone(container.VolumeMounts), func(one corev1.VolumeMount) bool { return one.Name != "cloud-provider-config" })
	if deployment.Name != "kube-scheduler" && (len(mounts) != 1 || len(container.Env) != 1) {
		w.Errorf("Deployment %s has the mounts %v and the variables %v", deployment.Name, mounts, container.Env)
	}
}

// TestPublishedProviderExtension checks that a provider extension with the selectors and the edits of published ones reaches
// all objects of a control plane that it must edit, that the programs keep their entrypoint and their flags, and that the
// resource-manager neither fights with it nor writes at rest.
func TestPublishedProviderExtension(t *testing.T) {
	w := newWorld(t)
	kit.Must(t, druidv1alpha1.AddToScheme(w.scheme))
	_, err := envtest.InstallCRDs(w.cp.Config(), envtest.CRDInstallOptions{
		MaxTime: kit.WaitTimeout, Paths: []string{filepath.Join(w.root, "config", "crd", "druid")}, ErrorIfPathMissing: true,
	})
	kit.Must(t, err)
	const shoot = "shoot--dev--published"
	w.shoot(shoot, map[string]string{constants.LabelShootProvider: "published", constants.LabelSeedProvider: "published"})
	requests := &kit.Requests{}
	config := rest.CopyConfig(w.cp.Config())
	config.Wrap(requests.Wrap)
	parts, err := inprocess.ResourceManager{
		Scheme: w.scheme, Source: config, Target: config, Namespaces: []string{shoot}, Class: bundles.ClassSeed,
	}.New(t.Context())
	kit.Must(t, err)
	kit.Run(t, parts.Manager)

	// The Etcds are older than the extension.
	etcds := w.emit(shoot, "etcds", w.emitted(shoot, "etcd/testdata/main.yaml", "etcd/testdata/events.yaml"))
	w.settled(etcds)
	w.registerPublished()
	kit.Change(t, w.client, etcds, func() { etcds.Spec.InjectLabels = map[string]string{"again": "true"} })
	workloads := w.emit(shoot, "control-plane", w.emitted(shoot, "kubeapiserver/testdata/service.yaml", "kubeapiserver/testdata/hibernated.yaml",
		"kubecontrollermanager/testdata/seed.yaml", "kubescheduler/testdata/seed.yaml")+fmt.Sprintf(statefulSet, shoot))
	w.settled(workloads, etcds)
	w.edited(shoot)
	kit.Quiet(t, requests)

	kit.Change(t, w.client, workloads, func() { workloads.Spec.InjectLabels = map[string]string{"again": "true"} })
	w.settled(workloads)
	kit.Quiet(t, requests)
	deployment := w.edited(shoot)["kube-controller-manager"]

	kit.Change(t, w.client, &deployment, func() { deployment.Spec.Template.Spec.Containers[0].Command[1] = "--kubeconfig=/elsewhere" })
	kit.Eventually(t, "the resource-manager corrects a user's edit", func() string {
		kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(&deployment), &deployment))
		if command := deployment.Spec.Template.Spec.Containers[0].Command; slices.Contains(command, "--kubeconfig=/elsewhere") {
			return fmt.Sprint(command)
		}
		return ""
	})
	w.settled(workloads)
	kit.Quiet(t, requests)
	w.edited(shoot)
	requests.Forget()
	kit.Quiet(t, requests)
	if writes := requests.Writes(); len(writes) > 0 {
		t.Errorf("at rest, the resource-manager wrote %v", writes)
	}
}
