package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/pages"
)

// obsolete is an annotation in the manifests of the former tool. It is removed from the manifests after the take-over.
const obsolete = "example.org/obsolete"

// ofAShop are the manifests that another tool applied and that are moved into a ManagedResource.
var ofAShop = strings.ReplaceAll(migrated, "metadata: {name: web, namespace: $NS}", "metadata: {name: web, namespace: $NS, annotations: {"+obsolete+`: "true"}}`)

// moved is the state that is compared before and after a take-over.
type moved struct {
	world     *world
	namespace string
	before    map[string]any
}

// TestMigrationPage runs the steps of docs/migration.md on objects as each tool leaves them. No object is deleted, recreated or
// restarted. The resource-manager owns the fields that the tool applied, and removes them when they are removed from the manifests. The
// tool's own object is deleted without its objects.
func TestMigrationPage(t *testing.T) {
	w := newWorld(t) // not parallel, because it uses the namespace garden
	directory := t.TempDir()
	kit.Must(t, os.Symlink(filepath.Join(repository(t), "config"), filepath.Join(directory, "config")))
	for folder, namespace := range map[string]string{"legacy": "legacy", "shop": "shop", "forum": "forum"} {
		writeFolder(t, filepath.Join(directory, folder), namespace, strings.ReplaceAll(ofAShop, "$NS", namespace))
	}
	for _, namespace := range []string{"legacy", "shop", "blog", "forum", "flux-system", "argocd"} {
		kit.Must(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	kit.Define(t, w.controlPlane.Config(), kindOf("kustomize.toolkit.fluxcd.io", "Kustomization"), kindOf("helm.toolkit.fluxcd.io", "HelmRelease"),
		kindOf("argoproj.io", "Application"))
	page := pages.Open(t, "docs/migration.md", pages.Shell{
		Directory: directory, Kubeconfig: w.kubeconfig, Path: pages.Programs(t, "kubectl-mr") + ":" + filepath.Join(repository(t), "bin"),
	})
	t.Cleanup(func() {
		kit.Must(t, client.IgnoreNotFound(w.client.Delete(context.Background(), &coordinationv1.Lease{ObjectMeta: named("garden", "gardener-resource-manager")})))
		w.forget(t, "garden", "shop", "blog", "forum")
	})
	w.fromUpstream(t, page)
	w.fromKustomization(t, page)
	w.fromHelmRelease(t, page)
	w.fromApplication(t, page)
	page.End()
}

// fromUpstream replaces the image of a Deployment. Its Pods would run the resource-manager that this test starts.
func (w *world) fromUpstream(t *testing.T, page *pages.Page) {
	t.Helper()
	const section, manager = "From gardener-resource-manager", "gardener-resource-manager"
	manifests := strings.ReplaceAll(ofAShop, "$NS", "legacy")
	before := predecessors[manager]
	before.annotations = map[string]string{"resources.gardener.cloud/origin": "garden/legacy"}
	left := w.leave(t, before, "legacy", manifests)
	documents, err := pack.Parse("manifests", []byte(manifests))
	kit.Must(t, err)
	parcel, err := pack.Pack(documents, pack.Options{Namespace: "garden", Name: "legacy"})
	kit.Must(t, err)
	parcel.ManagedResource.Spec.Class = ptr.To("seed")
	w.leaveManagedResource(t, parcel, left)
	w.run("resume", "legacy", "-n", "garden").says(t, 0)
	lease := &coordinationv1.Lease{ObjectMeta: named("garden", manager), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("former"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}}
	kit.Must(t, w.client.Create(t.Context(), lease))
	labels := map[string]string{"app": manager}
	kit.Must(t, w.client.Create(t.Context(), &appsv1.Deployment{ObjectMeta: named("garden", manager), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: manager, Image: "example.org/gardener-resource-manager:v1",
		}}}},
	}}, fieldOwner("gardenlet")))
	m := w.look(t, "legacy")

	says(t, page.Next(section), "ManagedResource garden/legacy: 3 to change", "serverside-applied")
	page.Next(section)
	deployment := &appsv1.Deployment{}
	kit.Must(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: "garden", Name: manager}, deployment))
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "example.org/resource-manager:v1.2.3" {
		t.Errorf("the image is %s", image)
	}
	kit.Change(t, w.client, lease, func() { // as its Pod leaves it when it ends
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1)
	})
	kit.StartManager(t, w.controlPlane.Kubeconfig(), nil, "leaderElection: {leaderElect: true, resourceNamespace: garden}\ncontrollers: {resourceClass: seed}\n")
	w.await(t, "garden", "legacy", state.Ready)
	if holder := page.Next(section); strings.HasPrefix(holder, "former") || strings.HasPrefix(holder, "\n") {
		t.Errorf("the leader is %s", holder)
	}
	m.taken(t, manager)
	m.withoutObsolete(t, "legacy", "-f", "-", "--class", "seed", "--force")
	w.forget(t, "garden", "legacy") // while its resource-manager runs
}

// fromKustomization moves the objects of kustomize-controller. A simulation does what kustomize-controller does when a Kustomization is
// deleted.
func (w *world) fromKustomization(t *testing.T, page *pages.Page) {
	t.Helper()
	const section = "A Kustomization"
	before := predecessors["Flux"]
	left := w.leave(t, before, "shop", strings.ReplaceAll(ofAShop, "$NS", "shop"))
	object := w.ofTool(t, "kustomize.toolkit.fluxcd.io", "Kustomization", "flux-system", "shop", "finalizers.fluxcd.io", `{"prune":true,"interval":"10m"}`)
	w.finalize(t, object, left, func(spec map[string]any) bool { return spec["suspend"] == true || spec["prune"] == false })
	m := w.look(t, "shop")
	page.Next(section)
	says(t, page.Next(section), "applied by Flux (Kustomization flux-system/shop)", "managedresource garden/shop", "ready")
	m.taken(t, before.manager)
	says(t, page.Next(section), "Deployment shop/web", "deleted")
	m.unchanged(t)
	m.withoutObsolete(t, "shop", "-f", "-")
}

// fromHelmRelease moves a release that Helm's library installed in the same way as for helm-controller.
func (w *world) fromHelmRelease(t *testing.T, page *pages.Page) {
	t.Helper()
	const section = "A HelmRelease"
	chart := filepath.Join(page.Directory, "blog")
	templates := strings.ReplaceAll(strings.ReplaceAll(ofAShop, ", namespace: $NS", ""), "colour: blue", "colour: {{ .Values.colour }}")
	for name, content := range map[string]string{
		"blog/Chart.yaml": "apiVersion: v2\nname: blog\nversion: 1.0.0\n", "values.yaml": "colour: blue\n", "blog/templates/objects.yaml": templates,
	} {
		kit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(page.Directory, name)), 0o700))
		kit.Must(t, os.WriteFile(filepath.Join(page.Directory, name), []byte(content), 0o600))
	}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &w.kubeconfig, ptr.To("blog")
	config := action.NewConfiguration()
	kit.Must(t, config.Init(flags, "blog", ""))
	loaded, err := loader.Load(chart)
	kit.Must(t, err)
	formerly := kube.ManagedFieldsManager
	kube.ManagedFieldsManager = "helm-controller"
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.WaitStrategy, install.Timeout = "blog", "blog", kube.StatusWatcherStrategy, kit.WaitTimeout
	_, err = install.Run(loaded, map[string]any{"colour": "blue"})
	kube.ManagedFieldsManager = formerly
	kit.Must(t, err)
	object := w.ofTool(t, "helm.toolkit.fluxcd.io", "HelmRelease", "blog", "blog", "finalizers.fluxcd.io", `{"interval":"10m"}`)
	m := w.look(t, "blog")
	w.finalize(t, object, m.objects(t), func(spec map[string]any) bool { return spec["suspend"] == true })

	page.Next(section)
	says(t, page.Next(section), "managedresource garden/blog", "ready")
	m.taken(t, "helm-controller")
	says(t, page.Next(section), "sh.helm.release.v1.blog.v1", "deleted")
	m.unchanged(t)
	m.withoutObsolete(t, "blog", "-f", "-")
}

// fromApplication moves the objects of Argo CD.
func (w *world) fromApplication(t *testing.T, page *pages.Page) {
	t.Helper()
	const section = "From Argo CD"
	before := predecessors["Argo CD"]
	left := w.leave(t, before, "forum", strings.ReplaceAll(ofAShop, "$NS", "forum"))
	object := w.ofTool(t, "argoproj.io", "Application", "argocd", "forum", "resources-finalizer.argocd.argoproj.io",
		`{"syncPolicy":{"automated":{"prune":true,"selfHeal":true}}}`)
	w.finalize(t, object, left, func(map[string]any) bool { return false })
	m := w.look(t, "forum")
	page.Next(section)
	kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if _, automated, err := unstructured.NestedMap(object.Object, "spec", "syncPolicy", "automated"); automated || err != nil {
		t.Errorf("the Application is %v, %v", object.Object["spec"], err)
	}
	says(t, page.Next(section), "applied by Argo CD (Application shop)", "managedresource garden/forum", "ready")
	m.taken(t, before.manager)
	says(t, page.Next(section), "Deployment forum/web", "deleted")
	m.unchanged(t)
	m.withoutObsolete(t, "forum", "-f", "-")
	for _, object := range m.objects(t) {
		for key := range object.GetAnnotations() {
			if strings.Contains(key, "argocd") || strings.Contains(key, "kubectl") {
				t.Errorf("%s still has %s", object.GetKind(), key)
			}
		}
	}
}

// ofTool creates the object in which a tool keeps its configuration.
func (w *world) ofTool(t *testing.T, group, kind, namespace, name, finalizer, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	kit.Must(t, json.Unmarshal([]byte(`{"spec":`+spec+`}`), &object.Object))
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName(name)
	if finalizer != "" {
		object.SetFinalizers([]string{finalizer})
	}
	kit.Must(t, w.client.Create(t.Context(), object))
	return object
}

// finalize simulates the reaction of a tool to the deletion of its object: it deletes the objects that it applied, unless it is
// configured to keep them.
func (w *world) finalize(t *testing.T, object *unstructured.Unstructured, applied []*unstructured.Unstructured, spares func(spec map[string]any) bool) {
	t.Helper()
	object = object.DeepCopy()
	go func() {
		for ; t.Context().Err() == nil; <-time.After(50 * time.Millisecond) {
			err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
			if apierrors.IsNotFound(err) {
				return
			}
			if err != nil || object.GetDeletionTimestamp() == nil {
				continue
			}
			spec, _ := object.Object["spec"].(map[string]any)
			for _, each := range applied {
				if !spares(spec) {
					_ = w.client.Delete(t.Context(), each.DeepCopy())
				}
			}
			object.SetFinalizers(nil)
			_ = w.client.Update(t.Context(), object)
		}
	}()
}

func says(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("%q is not in the output:\n%s", text, output)
		}
	}
}

func writeFolder(t *testing.T, folder, namespace, manifests string) {
	t.Helper()
	kit.Must(t, os.MkdirAll(folder, 0o700))
	for name, content := range map[string]string{"kustomization.yaml": "namespace: " + namespace + "\nresources: [objects.yaml]\n", "objects.yaml": manifests} {
		kit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
}

// look records the content of a namespace.
func (w *world) look(t *testing.T, namespace string) *moved {
	t.Helper()
	m := &moved{world: w, namespace: namespace}
	m.before = m.now(t)
	return m
}

// objects returns the applied objects.
func (m *moved) objects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, what := range [][3]string{{"v1", "ConfigMap", "settings"}, {"v1", "Service", "web"}, {"apps/v1", "Deployment", "web"}} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(what[0])
		object.SetKind(what[1])
		kit.Must(t, m.world.client.Get(t.Context(), types.NamespacedName{Namespace: m.namespace, Name: what[2]}, object))
		found = append(found, object)
	}
	return found
}

// now returns the state that must not change: the existing objects, their content, and the running Pods.
func (m *moved) now(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, object := range m.objects(t) {
		spec, data := object.Object["spec"], object.Object["data"]
		all[object.GetKind()] = fmt.Sprint(object.GetUID(), spec, data)
	}
	pods := &corev1.PodList{}
	kit.Must(t, m.world.client.List(t.Context(), pods, client.InNamespace(m.namespace)))
	for _, pod := range pods.Items {
		all["Pod "+string(pod.UID)] = pod.Status.ContainerStatuses[0].RestartCount
	}
	return all
}

// unchanged checks that nothing has changed.
func (m *moved) unchanged(t *testing.T) {
	t.Helper()
	now := m.now(t)
	for name, before := range m.before {
		if now[name] != before {
			t.Errorf("in %s, %s was\n%v\nand now is\n%v", m.namespace, name, before, now[name])
		}
	}
	if len(now) != len(m.before) {
		t.Errorf("the content of %s was\n%v\nand now is\n%v", m.namespace, m.before, now)
	}
}

// taken checks that a manager owns no more fields, except for those that are never taken over, and that nothing has changed.
func (m *moved) taken(t *testing.T, manager string) {
	t.Helper()
	m.unchanged(t)
	for _, object := range m.objects(t) {
		fields := fieldsOf(t, object, manager)
		if fields != "" && !strings.Contains(fields, `{"f:spec":{"f:replicas":{}}}`) {
			t.Errorf("of %s, %s still has %s", object.GetKind(), manager, fields)
		}
		if origin := object.GetAnnotations()["resources.gardener.cloud/origin"]; !strings.HasPrefix(origin, "garden/") {
			t.Errorf("the origin of %s is %q", object.GetKind(), origin)
		}
	}
}

// withoutObsolete delivers the manifests without the annotation that the former tool applied, and checks that it is removed.
func (m *moved) withoutObsolete(t *testing.T, name string, how ...string) {
	t.Helper()
	manifests := strings.ReplaceAll(strings.ReplaceAll(ofAShop, "$NS", m.namespace), ", annotations: {"+obsolete+`: "true"}`, "")
	out := m.world.runCall(call{args: append([]string{"create", name, "-n", "garden", "--wait", "--timeout", "2m"}, how...), in: manifests})
	out.says(t, 0, "ready")
	for _, object := range m.objects(t) {
		if _, has := object.GetAnnotations()[obsolete]; has {
			t.Errorf("%s still has the annotation that was removed from the manifests", object.GetKind())
		}
	}
	m.unchanged(t)
}

// kindOf returns the definition of a kind of another tool. Its objects may have any content.
func kindOf(group, kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
				},
			}},
		},
	}
}
