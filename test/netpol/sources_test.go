package netpol

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/netpol/controller"
	"github.com/trellis-k8s/trellis/test/kit"
)

// definitions returns the definitions of Istio's kinds.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	preserve := true
	var all []*apiextensionsv1.CustomResourceDefinition
	for plural, kind := range map[string]string{"virtualservices": "VirtualService", "gateways": "Gateway"} {
		all = append(all, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".networking.istio.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "networking.istio.io", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1beta1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: &preserve,
					}},
				}},
			},
		})
	}
	return all
}

func install(t *testing.T, config *rest.Config) {
	t.Helper()
	kit.Define(t, config, definitions()...)
}

// uninstall deletes the definitions and waits until they no longer exist.
func uninstall(t *testing.T, config *rest.Config) {
	t.Helper()
	c, err := apiextensionsclient.NewForConfig(config)
	kit.Must(t, err)
	for _, definition := range definitions() {
		kit.Must(t, c.CustomResourceDefinitions().Delete(t.Context(), definition.Name, metav1.DeleteOptions{}))
		kit.EventuallyTrue(t, definition.Name+" no longer exists", func() bool {
			_, err := c.CustomResourceDefinitions().Get(t.Context(), definition.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}

func istioObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.istio.io/v1beta1", "kind": kind, "spec": spec}}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func podWith(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}, AutomountServiceAccountToken: new(bool)},
	}
}

// TestIstioComesAndGoes defines and removes the kinds of Istio while the controller runs, and also Gateways and their Pods.
func TestIstioComesAndGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(3)
	stop := f.run(controller.Options{Namespaces: all})
	service := f.service(all[0], "shop", nil)
	own := pairIn(all[0], "shop-tcp-8080")
	f.eventually("policies without Istio", all, own...)

	install(t, f.config)
	gateway := istioObject("Gateway", all[1], "main", map[string]any{"selector": map[string]any{"gateway": all[0]}})
	virtualService := istioObject("VirtualService", all[0], "shop", map[string]any{
		"gateways": []any{all[1] + "/main"},
		"http": []any{map[string]any{"route": []any{map[string]any{"destination": map[string]any{
			"host": "shop." + all[0] + ".svc.cluster.local", "port": map[string]any{"number": int64(80)},
		}}}}},
	})
	kit.Must(t, f.client.Create(f.ctx, virtualService))
	f.warned(service, "GatewayNotUsable", all[1]+"/main")
	kit.Must(t, f.client.Create(f.ctx, gateway.DeepCopy()))
	labels := map[string]string{"gateway": all[0]}
	kit.Must(t, f.client.Create(f.ctx, podWith(all[1], "gateway", labels)))
	forOther := slices.Concat(own, []string{all[0] + "/ingress-to-shop-tcp-8080-from-" + all[1], all[1] + "/egress-to-" + all[0] + "-shop-tcp-8080-from-istio"})
	f.eventually("policies for the gateway", all, forOther...)

	pod := podWith(all[0], "gateway", labels)
	kit.Must(t, f.client.Create(f.ctx, pod))
	forBoth := slices.Concat(forOther, pairIn(all[0], "shop-tcp-8080-from-istio"))
	f.eventually("a Pod of the gateway in the Service's namespace", all, forBoth...)
	stop()
	f.requests.Forget()
	stop = f.run(controller.Options{Namespaces: all})
	for _, request := range f.quiet(all[2], "other") {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("a new controller sends %s", request)
		}
	}
	f.eventually("a new controller changes nothing", all[:2], forBoth...)
	kit.Must(t, f.client.Delete(f.ctx, pod, client.GracePeriodSeconds(0)))
	f.eventually("the Pod is deleted", all[:2], forOther...)

	kit.Must(t, f.client.Delete(f.ctx, gateway))
	f.eventually("the Gateway is deleted", all[:2], own...)
	kit.Must(t, f.client.Create(f.ctx, gateway.DeepCopy()))
	f.eventually("the Gateway is created again", all[:2], forOther...)
	uninstall(t, f.config)
	f.eventually("Istio is removed", all[:2], own...)
	install(t, f.config)
	kit.EventuallyTrue(t, "Istio is installed again", func() bool { return f.client.Create(f.ctx, gateway.DeepCopy()) == nil })
	virtualService.SetResourceVersion("")
	kit.EventuallyTrue(t, "its other kind is installed again", func() bool { return f.client.Create(f.ctx, virtualService.DeepCopy()) == nil })
	f.eventually("policies for the gateway again", all[:2], forOther...)
	stop()
	uninstall(t, f.config)
}

// TestOnlyWhilePodsExist checks that policies are created with the first Pod with a label and deleted with the last one.
func TestOnlyWhilePodsExist(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(2)
	f.run(controller.Options{Namespaces: all, OnlyWhilePodsExist: true})
	f.service(all[0], "shop", map[string]string{
		"namespace-selectors":    selecting(corev1.LabelMetadataName, all[1]),
		"from-all-allowed-ports": `[{"port":9090}]`, "from-world-to-ports": "[]",
	})
	world := []string{all[0] + "/ingress-to-shop-from-world"}
	f.eventually("the policies that do not depend on Pods", all, world...)
	first := podWith(all[0], "first", map[string]string{domain + "to-shop-tcp-8080": "allowed"})
	kit.Must(t, f.client.Create(f.ctx, first))
	f.eventually("a Pod", all, slices.Concat(world, pairIn(all[0], "shop-tcp-8080"))...)
	second := podWith(all[1], "second", map[string]string{domain + "to-" + all[0] + "-all": "allowed"})
	kit.Must(t, f.client.Create(f.ctx, second))
	viaAll := []string{all[0] + "/ingress-to-shop-tcp-9090-via-all-from-" + all[1], all[1] + "/egress-to-" + all[0] + "-shop-tcp-9090-via-all"}
	f.eventually("a Pod of another namespace", all, slices.Concat(world, viaAll, pairIn(all[0], "shop-tcp-8080"))...)
	f.patch(second, map[string]any{"metadata": map[string]any{"labels": map[string]any{domain + "to-" + all[0] + "-all": "denied"}}})
	f.eventually("its label has another value", all, slices.Concat(world, pairIn(all[0], "shop-tcp-8080"))...)
	kit.Must(t, f.client.Delete(f.ctx, first, client.GracePeriodSeconds(0)))
	f.eventually("the Pod is deleted", all, world...)
}

// TestIngressesComeAndGo creates and deletes Ingresses, and the namespace of the ingress controller.
func TestIngressesComeAndGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(1)
	ingressNamespace := all[0] + "-ingress"
	all = append(all, ingressNamespace)
	f.run(controller.Options{Namespaces: all, Config: netpol.Config{IngressController: &netpol.Pods{
		Namespace: ingressNamespace, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}},
	}}})
	service := f.service(all[0], "shop", nil)
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: all[0], Name: "shop"}}
	ingress.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "shop", Port: networkingv1.ServiceBackendPort{Number: 8080},
	}}
	kit.Must(t, f.client.Create(f.ctx, ingress))
	own := pairIn(all[0], "shop-tcp-8080")
	f.eventually("no namespace of the ingress controller", all, own...)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ingressNamespace}}
	kit.Must(t, f.client.Create(f.ctx, namespace))
	f.warned(service, "IngressPortNotFound", "port 8080")
	f.patch(ingress, map[string]any{"spec": map[string]any{"defaultBackend": map[string]any{"service": map[string]any{"port": map[string]any{"number": 80}}}}})
	exposed := slices.Concat(own, []string{
		all[0] + "/ingress-to-shop-tcp-8080-from-ingress-controller", ingressNamespace + "/egress-to-" + all[0] + "-shop-tcp-8080-from-ingress-controller",
	})
	f.eventually("the Ingress exposes the Service", all, exposed...)
	kit.Must(t, f.client.Delete(f.ctx, ingress))
	f.eventually("the Ingress is deleted", all, own...)
	ingress.ResourceVersion, ingress.Spec.DefaultBackend.Service.Port.Number = "", 80
	kit.Must(t, f.client.Create(f.ctx, ingress))
	f.eventually("the Ingress is created again", all, exposed...)
	kit.Must(t, f.client.Delete(f.ctx, namespace))
	f.eventually("the namespace is deleted", all, own...)
}

// TestNamedPortThatNoPodHas checks that a warning reports a named port that none of a few Pods has. The Pods are read once, and not
// watched. They are not read for numeric ports.
func TestNamedPortThatNoPodHas(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(1)
	f.run(controller.Options{Namespaces: all})
	pod := podWith(all[0], "shop", map[string]string{"app": "shop"})
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	kit.Must(t, f.client.Create(f.ctx, pod))
	service := f.service(all[0], "shop", nil)
	target := func(port any) {
		f.patch(service, map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 80, "protocol": "TCP", "targetPort": port}}}})
	}
	f.eventually("policies for a numeric port", all, pairIn(all[0], "shop-tcp-8080")...)
	others := 0
	read := func() (count int) {
		others++
		for _, request := range f.quiet(all[0], "other"+strconv.Itoa(others)) {
			if strings.HasSuffix(request, "/pods") {
				count++
			}
		}
		return count
	}
	if count := read(); count != 0 || f.requests.Watched("/pods") {
		t.Errorf("Pods are read %d times for numeric ports, or watched", count)
	}
	target("web")
	kit.EventuallyTrue(t, "policies for a port name that the Pod has", func() bool {
		return slices.Contains(f.policies(all[0]), all[0]+"/ingress-to-shop-tcp-web")
	})
	kit.EventuallyTrue(t, "a single read of the Pods", func() bool { return read() == 1 })
	f.annotate(service, "from-world-to-ports", "[]")
	kit.EventuallyTrue(t, "another policy", func() bool {
		return slices.Contains(f.policies(all[0]), all[0]+"/ingress-to-shop-from-world")
	})
	if count := read(); count != 1 {
		t.Errorf("Pods are read %d times for the same ports", count)
	}
	f.annotate(service, "from-world-to-ports", `[{"port":"metrics"}]`)
	f.warned(service, "PodPortNotFound", `from-world-to-ports: no Pod selected by the Service has a container port named "metrics" with protocol TCP`)
	f.annotate(service, "from-world-to-ports", nil)
	target("wbe")
	f.warned(service, "PodPortNotFound", `Port 80 of the Service: no Pod selected by the Service has a container port named "wbe"`)
	if f.requests.Watched("/pods") {
		t.Error("Pods are watched")
	}
	f.patch(f.service(all[0], "none", nil), map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 80, "protocol": "TCP", "targetPort": "web"}}}})
	kit.EventuallyTrue(t, "policies of a Service without Pods", func() bool {
		return slices.Contains(f.policies(all[0]), all[0]+"/ingress-to-none-tcp-web")
	})
	f.quiet(all[0], "last")
	var list eventsv1.EventList
	kit.Must(t, f.client.List(f.ctx, &list, client.InNamespace(all[0])))
	for _, event := range list.Items {
		if event.Regarding.Name == "none" && event.Action == "Reconcile" { // the API server creates Events too
			t.Errorf("Event %q for a Service without Pods", event.Note)
		}
	}
}
