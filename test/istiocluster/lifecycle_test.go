package istiocluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/istiocluster"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestLifeOfADestinationRule checks that EnvoyFilters follow rules, Services and namespaces as they are created, changed and deleted.
func TestLifeOfADestinationRule(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	second := kit.NewNamespace(t, f.client, "ingress", nil)
	f.run(f.source, f.ingress, second)
	one := rule(f.source, "shop")
	kit.Must(t, f.client.Create(f.ctx, one.DeepCopy()))
	service := f.service(f.source, "shop")
	shop := "80||shop." + f.source
	f.eventually("the Service is created after its rule", f.ingress, f.source, shop)
	namespace := &corev1.Namespace{}
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKey{Name: f.source}, namespace))
	live := f.filter(f.ingress, f.source)
	owner := metav1.GetControllerOf(live)
	if owner == nil || owner.Kind != "Namespace" || owner.APIVersion != "v1" || owner.Name != f.source || owner.UID != namespace.UID || len(live.GetOwnerReferences()) != 1 {
		t.Errorf("the owners are %+v", live.GetOwnerReferences())
	}
	if labels := live.GetLabels(); len(labels) != 1 || labels["resources.gardener.cloud/managed-by"] != "istio-cluster-configuration" {
		t.Errorf("the labels are %v", labels)
	}

	f.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second}}, marked("labels", istiocluster.LabelExposureClass, "internal"))
	f.eventually("another namespace gets gateways", second, f.source, shop)
	f.patch(service, map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"name": "a", "port": 80}, map[string]any{"name": "grpc", "port": 90}}}})
	f.eventually("another port", f.ingress, f.source, shop, "90||shop."+f.source)
	f.patch(service, marked("annotations", istiocluster.AnnotationExportTo, second))
	f.eventually("the Service is visible only elsewhere", f.ingress, f.source)
	f.patch(service, marked("annotations", istiocluster.AnnotationExportTo, "*"))
	f.eventually("the Service is visible again", f.ingress, f.source, shop, "90||shop."+f.source)
	f.patch(one, map[string]any{"spec": map[string]any{"exportTo": []any{f.ingress}}})
	f.eventually("the rule is visible only elsewhere", second, f.source)
	f.patch(one, map[string]any{"spec": map[string]any{"exportTo": []any{"*"}}})
	f.eventually("the rule is visible again", second, f.source, shop, "90||shop."+f.source)
	f.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second}}, marked("labels", istiocluster.LabelExposureClass, nil))
	f.eventually("a namespace loses its gateways", second, f.source)
	kit.Must(t, f.client.Delete(f.ctx, one.DeepCopy()))
	f.eventually("the rule is deleted", f.ingress, f.source)
	kit.Must(t, f.client.Create(f.ctx, one.DeepCopy()))
	f.eventually("the rule is created again", f.ingress, f.source, shop, "90||shop."+f.source)
	kit.Must(t, f.client.Delete(f.ctx, service))
	f.eventually("the Service is deleted", f.ingress, f.source)
	f.service(f.source, "shop")
	f.eventually("the Service is created again", f.ingress, f.source, shop)
	kit.Must(t, f.client.Delete(f.ctx, namespace))
	f.eventually("the namespace is deleted", f.ingress, f.source)
}

// marked returns a change of one label or annotation.
func marked(field, key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{field: map[string]any{key: value}}}
}

// TestHandMadeChangesArePutBack checks that every change of an EnvoyFilter by another client is reverted, and so is a deletion. Labels
// of other clients are kept.
func TestHandMadeChangesArePutBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.run(f.source, f.ingress)
	f.service(f.source, "shop")
	kit.Must(t, f.client.Create(f.ctx, rule(f.source, "shop")))
	f.eventually("settings", f.ingress, f.source, "80||shop."+f.source)
	want := f.filter(f.ingress, f.source)
	again := func(reason string) {
		t.Helper()
		kit.EventuallyTrue(t, reason+" is reverted", func() bool {
			live := f.filter(f.ingress, f.source)
			return live != nil && istiocluster.Digest(live) == istiocluster.Digest(want)
		})
	}
	f.patch(want, marked("labels", "their", "label"))
	for name, change := range map[string]map[string]any{
		"settings":   {"spec": map[string]any{"configPatches": []any{}}},
		"more":       {"spec": map[string]any{"priority": 5}},
		"all":        {"spec": nil},
		"its owner":  {"metadata": map[string]any{"ownerReferences": nil}},
		"its label":  marked("labels", istiocluster.LabelManagedBy, nil),
		"its label2": marked("labels", istiocluster.LabelManagedBy, "somebody"),
	} {
		f.patch(want, change)
		again(name)
	}
	if labels := f.filter(f.ingress, f.source).GetLabels(); labels["their"] != "label" {
		t.Errorf("the labels are %v", labels)
	}
	kit.Must(t, f.client.Delete(f.ctx, want.DeepCopy()))
	again("a deletion")
}

// TestOneRequestForEachEnvoyFilter checks that an EnvoyFilter is written by one request. If nothing differs, as after a restart or with
// an EnvoyFilter of gardener-resource-manager, it is not written.
func TestOneRequestForEachEnvoyFilter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := kit.NewNamespace(t, f.client, "other", nil)
	all := []string{f.source, f.ingress, other}
	stop := f.run(all...)
	f.quiet(other)
	f.requests.Forget()
	service := f.service(f.source, "shop")
	kit.Must(t, f.client.Create(f.ctx, rule(f.source, "shop")))
	f.eventually("settings", f.ingress, f.source, "80||shop."+f.source)
	f.patch(service, marked("annotations", "does-not", "matter"))
	f.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.source}}, marked("labels", "does-not", "matter"))
	live := f.filter(f.ingress, f.source)
	f.patch(live, marked("annotations", "their", "annotation"))
	if sent := f.quiet(other); len(sent) != 1 {
		t.Errorf("the requests are %q", sent)
	}
	stop()
	adopted := f.filter(f.ingress, f.source)
	kit.Must(t, f.client.Delete(f.ctx, adopted.DeepCopy()))
	adopted.SetResourceVersion("")
	adopted.SetManagedFields(nil)
	kit.Must(t, f.client.Create(f.ctx, adopted, client.FieldOwner("gardener-resource-manager")))
	stale := adopted.DeepCopy()
	stale.SetResourceVersion("")
	stale.SetName(istiocluster.FilterName("gone"))
	kit.Must(t, f.client.Create(f.ctx, stale, client.FieldOwner("gardener-resource-manager")))
	f.requests.Forget()
	f.run(all...)
	f.eventually("the unwanted EnvoyFilter is deleted", f.ingress, "gone")
	for _, request := range f.quiet(other) {
		if !strings.HasPrefix(request, "GET ") && !strings.HasSuffix(request, "/gone-cluster-configuration") {
			t.Errorf("a new controller sends %s", request)
		}
	}
	if got := f.filter(f.ingress, f.source); got.GetResourceVersion() != adopted.GetResourceVersion() {
		t.Error("the correct EnvoyFilter was written")
	}
	f.patch(adopted, map[string]any{"spec": map[string]any{"configPatches": []any{}}})
	f.eventually("a change after the takeover", f.ingress, f.source, "80||shop."+f.source)
}

// TestIstioComesAndGoes defines and removes the kinds of Istio one after the other while the controller runs.
func TestIstioComesAndGoes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	controlPlane, err := controlplane.Start(t.Context(), controlplane.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, controlPlane.Stop()) })
	f := newFixtureIn(t, controlPlane.Config())
	f.service(f.source, "shop")
	f.run(f.source, f.ingress)
	shop := "80||shop." + f.source
	install(t, f.config, rules)
	kit.EventuallyTrue(t, "a rule", func() bool { return f.client.Create(f.ctx, rule(f.source, "shop")) == nil })
	install(t, f.config, filters)
	f.eventually("both kinds exist", f.ingress, f.source, shop)

	uninstall(t, f, rules)
	f.eventually("the kind of rules is removed", f.ingress, f.source)
	install(t, f.config, rules)
	kit.EventuallyTrue(t, "a rule again", func() bool { return f.client.Create(f.ctx, rule(f.source, "shop")) == nil })
	f.eventually("both kinds exist again", f.ingress, f.source, shop)
	uninstall(t, f, filters)
	install(t, f.config, filters)
	f.eventually("EnvoyFilters exist again", f.ingress, f.source, shop)
}

func uninstall(t *testing.T, f *fixture, plural string) {
	t.Helper()
	c, err := apiextensionsclient.NewForConfig(f.config)
	kit.Must(t, err)
	name := plural + ".networking.istio.io"
	kit.Must(t, c.CustomResourceDefinitions().Delete(f.ctx, name, metav1.DeleteOptions{}))
	kit.EventuallyTrue(t, name+" no longer exists", func() bool {
		_, err := c.CustomResourceDefinitions().Get(f.ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// TestBinary checks that the configuration enables the controller, which is disabled by default.
func TestBinary(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kit.DefineManagedResources(t, f.config)
	f.service(f.source, "shop")
	kit.Must(t, f.client.Create(f.ctx, rule(f.source, "shop")))
	all, kubeconfig := []string{f.source, f.ingress}, shared.Get(t).Kubeconfig()
	disabled := kit.StartManager(t, kubeconfig, all, "")
	kit.EventuallyTrue(t, "other controllers run", func() bool { return strings.Contains(disabled.Written.String(), "Starting workers") })
	if strings.Contains(disabled.Written.String(), "istio-cluster-configuration") {
		t.Error("the controller runs although it is disabled")
	}
	disabled.Stop()
	p := kit.StartManager(t, kubeconfig, all, "controllers: {istioClusterConfiguration: {enabled: true, concurrentSyncs: 2}}")
	f.eventually("settings", f.ingress, f.source, "80||shop."+f.source)
	const created = `resource_manager_istio_cluster_configuration_changes_total{change="created"} `
	kit.EventuallyTrue(t, "the metrics count the changes", func() bool {
		_, body := p.Get(p.Metrics, "/metrics") // twice, if an event arrives before the cache shows the first write
		return strings.Contains(body, created) && !strings.Contains(body, created+"0")
	})
	p.Stop()
}
