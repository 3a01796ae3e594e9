package chart

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// file returns the configuration file of the release, or an empty string without a release.
func (h *helm) file() string {
	configMap := &corev1.ConfigMap{}
	if h.get(configMap, "", manager+"-config") != nil {
		return ""
	}
	return configMap.Data["config.yaml"]
}

// targetRole returns the rules for the target cluster, or none without a release.
func (h *helm) targetRole() []rbacv1.PolicyRule {
	role := &rbacv1.ClusterRole{}
	if h.client.Get(h.Context(), client.ObjectKey{Name: h.namespace + ":" + manager + ":target"}, role) != nil {
		return nil
	}
	return role.Rules
}

const (
	collecting    = "rbac: {target: {admin: false}}\nconfig: {controllers: {garbageCollector: {enabled: true}}}\n"
	notCollecting = "rbac: {target: {admin: false}}\nreplicas: 3\n"
)

// TestLifeOfARelease installs, upgrades, rolls back and uninstalls in every sensible order. Rights must follow the
// configuration, Pods must be replaced when the configuration changes, and the definition of ManagedResources and
// their objects must be retained.
func TestLifeOfARelease(t *testing.T) {
	needsTime(t)
	h := newHelm(t)
	const name = "resource-manager"
	if err := h.upgrade(name, collecting); err == nil {
		t.Error("a release that is not installed was upgraded")
	}
	kit.Must(t, h.install(name, collecting, takeOver))
	kept := h.manage("kept", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: "+h.namespace+"}\n")
	h.wantRelease("installed", "garbageCollector", 2)
	first := h.template()
	if err := h.install(name, collecting); err == nil {
		t.Error("the release was installed twice")
	}

	kit.Must(t, h.upgrade(name, notCollecting))
	h.wantRelease("upgraded", "", 3)
	if reflect.DeepEqual(h.template(), first) {
		t.Error("the Pods are not replaced although their configuration changed")
	}
	if err := h.upgrade(name, "mode: sead"); err == nil || !strings.Contains(err.Error(), "/mode") {
		t.Errorf("wrong values: %v", err)
	}
	h.wantRelease("not upgraded to wrong values", "", 3)
	kit.Must(t, h.rollback(name, 1))
	h.wantRelease("rolled back", "garbageCollector", 2)
	if got := h.template(); !reflect.DeepEqual(got, first) {
		t.Errorf("after rolling back the Pods are\n%+v\nwant\n%+v", got, first)
	}
	kit.Must(t, h.upgrade(name, notCollecting))
	h.wantRelease("upgraded after rolling back", "", 3)

	for range 2 {
		kit.Must(t, h.uninstall(name))
		h.wantUninstalled(kept)
		kit.Must(t, h.install(name, collecting)) // the definition still belongs to this release
		h.wantRelease("installed again", "garbageCollector", 2)
	}
	kit.Must(t, h.rollbackFails(name))
	kit.Must(t, h.uninstall(name))
	if err := h.uninstall(name); err == nil {
		t.Error("the release was uninstalled twice")
	}
	h.wantUninstalled(kept)
}

// rollbackFails tries to roll back to a revision that does not exist. This must not change anything.
func (h *helm) rollbackFails(name string) error {
	h.Helper()
	if err := h.rollback(name, 17); err == nil {
		h.Error("the release was rolled back to a missing revision")
	}
	h.wantRelease("not rolled back", "garbageCollector", 2)
	return nil
}

// TestDefinitionIsUpgraded checks that Helm changes the definition of ManagedResources with the chart, and that a
// rollback reverts the change.
func TestDefinitionIsUpgraded(t *testing.T) {
	needsTime(t)
	h := newHelm(t)
	kit.Must(t, h.install("resource-manager", "", takeOver))
	t.Cleanup(func() { kit.Must(t, h.uninstall("resource-manager")) })
	for _, file := range h.chart.Files {
		if file.Name == "files/managedresources.yaml" {
			file.Data = bytes.Replace(file.Data, []byte("    shortNames:\n"), []byte("    shortNames:\n    - managed\n"), 1)
		}
	}
	kit.Must(t, h.upgrade("resource-manager", ""))
	if names := h.shortNames(); !slices.Equal(names, []string{"managed", "mr"}) {
		t.Errorf("after the upgrade the short names are %v", names)
	}
	kit.Must(t, h.rollback("resource-manager", 1))
	if names := h.shortNames(); !slices.Equal(names, []string{"mr"}) {
		t.Errorf("after rolling back the short names are %v", names)
	}
}

func (h *helm) shortNames() []string {
	h.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	kit.Must(h, h.client.Get(h.Context(), client.ObjectKey{Name: "managedresources.resources.gardener.cloud"}, definition))
	names, _, err := unstructured.NestedStringSlice(definition.Object, "spec", "names", "shortNames")
	kit.Must(h, err)
	return names
}

func (h *helm) template() *corev1.PodTemplateSpec {
	h.Helper()
	deployment := &appsv1.Deployment{}
	kit.Must(h, h.get(deployment, "", manager))
	return &deployment.Spec.Template
}

// wantRelease checks a release: its configuration, with or without the word, the corresponding rights, and its
// replicas.
func (h *helm) wantRelease(when, word string, replicas int32) {
	h.Helper()
	deployment := &appsv1.Deployment{}
	kit.Must(h, h.get(deployment, "", manager))
	if *deployment.Spec.Replicas != replicas {
		h.Errorf("%s: got %d replicas, want %d", when, *deployment.Spec.Replicas, replicas)
	}
	if has := strings.Contains(h.file(), "garbageCollector"); has != (word != "") {
		h.Errorf("%s: the configuration is\n%s", when, h.file())
	}
	lines := strings.Join(linesOf("target", "", h.targetRole()), "\n")
	if has := strings.Contains(lines, "delete configmaps"); has != (word != "") {
		h.Errorf("%s: the rights are\n%s", when, lines)
	}
	definition := h.definition()
	if definition.Annotations["helm.sh/resource-policy"] != "keep" {
		h.Errorf("%s: the definition's annotations are %v", when, definition.Annotations)
	}
	h.eventuallyAvailable(manager)
}

func (h *helm) definition() *metav1.PartialObjectMetadata {
	h.Helper()
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	kit.Must(h, h.client.Get(h.Context(), client.ObjectKey{Name: "managedresources.resources.gardener.cloud"}, definition))
	return definition
}

// wantUninstalled checks that only the definition and ManagedResources remain.
func (h *helm) wantUninstalled(kept *resourcesv1alpha1.ManagedResource) {
	h.Helper()
	if h.definition().DeletionTimestamp != nil {
		h.Error("the definition is being deleted")
	}
	kit.Must(h, h.get(kept, "", kept.Name))
	if kept.DeletionTimestamp != nil {
		h.Error("the ManagedResource is being deleted")
	}
	h.eventuallyGone(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: manager}})
	ours := client.MatchingLabels{"app.kubernetes.io/instance": "resource-manager"}
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.ConfigMapList{}} {
		kit.Must(h, h.client.List(h.Context(), list, ours, client.InNamespace(h.namespace)))
		if left := reflect.ValueOf(list).Elem().FieldByName("Items").Len(); left > 0 {
			h.Errorf("%d objects remain: %+v", left, list)
		}
	}
	if h.targetRole() != nil {
		h.Error("the rights for the target cluster still exist")
	}
}

// TestUpgradeFromGardenerResourceManager installs over the objects that gardener deploys. The Deployment, whose
// selector is immutable, must be retained and run other Pods. The other objects must be retained, too.
func TestUpgradeFromGardenerResourceManager(t *testing.T) {
	needsTime(t)
	h := newHelm(t)
	deployment := h.deployUpstream()
	err := h.install("resource-manager", "crds: {create: false}")
	if err == nil || !strings.Contains(err.Error(), "ownership") {
		t.Errorf("the release adopted objects without the option to do so: %v", err)
	}
	kit.Must(t, h.install("resource-manager", "", takeOver))
	t.Cleanup(func() { kit.Must(t, h.uninstall("resource-manager")) })
	h.eventuallyAvailable(manager)
	after := &appsv1.Deployment{}
	kit.Must(t, h.get(after, "", manager))
	if after.UID != deployment.UID {
		t.Error("the Deployment was created again")
	}
	container := after.Spec.Template.Spec.Containers[0]
	if len(after.Spec.Template.Spec.Containers) != 1 || container.Image != "resource-manager:dev" ||
		!reflect.DeepEqual(container.Args, []string{"--config=/etc/resource-manager/config/config.yaml"}) {
		t.Errorf("the containers are %+v", after.Spec.Template.Spec.Containers)
	}
	service := &corev1.Service{}
	kit.Must(t, h.get(service, "", manager))
	if service.Labels["app.kubernetes.io/name"] != "resource-manager" || len(service.Spec.Ports) < 2 {
		t.Errorf("the Service is %+v", service)
	}
}

// deployUpstream creates objects like those of gardener-resource-manager, as a client that uses updates.
func (h *helm) deployUpstream() *appsv1.Deployment {
	h.Helper()
	labels := map[string]string{"app": manager}
	meta := metav1.ObjectMeta{Name: manager, Namespace: h.namespace, Labels: labels}
	create := func(object client.Object) {
		kit.Must(h, h.client.Create(h.Context(), object, client.FieldOwner("gardenlet")))
	}
	create(&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)})
	create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
		{Name: "metrics", Port: 8080, TargetPort: intstr.FromInt32(8080)}, {Name: "health", Port: 8081, TargetPort: intstr.FromInt32(8081)},
		{Name: "server", Port: 443, TargetPort: intstr.FromInt32(10250)},
	}}})
	create(&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
	}})
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: manager,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: manager, Image: "upstream", Args: []string{"--config=/etc/gardener-resource-manager/config/config.yaml"},
				Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}, {Name: "health", ContainerPort: 8081}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		}},
	}}
	create(deployment)
	return deployment
}
