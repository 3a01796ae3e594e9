package netpol

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trellis-k8s/trellis/test/random"
)

var (
	cases = flag.Int("netpol.cases", 10000, "random clusters of TestAllowed_MatchesRequest")
	seed  = flag.Uint64("netpol.seed", 1, "of the random clusters")
)

// TestAllowed_MatchesRequest checks that, in random clusters, the policies allow exactly the traffic that the documents
// promise. They do not depend on the order of objects.
func TestAllowed_MatchesRequest(t *testing.T) {
	t.Parallel()
	allowed, denied := 0, 0
	for i := range *cases {
		more, less := checkWorld(t, fmt.Sprintf("case %d", i), &generator{Rand: rand.New(rand.NewPCG(*seed, uint64(i)))})
		allowed, denied = allowed+more, denied+less
	}
	if allowed < *cases/2 || denied < *cases/10 {
		t.Errorf("the clusters are not representative: %d connections are allowed, %d are denied", allowed, denied)
	}
}

// FuzzWorld does the same with clusters that a fuzzer generates.
func FuzzWorld(f *testing.F) {
	f.Add([]byte{})
	for i := range byte(20) {
		f.Add([]byte{i, i * 3, i * 5, i * 7, i * 11, i * 13, i * 17, i * 19, i * 23, i * 29, i * 31, i * 37, i * 41, i * 43, i * 47})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkWorld(t, "fuzzed", &generator{Rand: random.From(data)})
	})
}

// checkWorld checks all connections in one cluster, and returns how many are allowed and denied.
func checkWorld(t *testing.T, name string, g *generator) (allowed, denied int) {
	t.Helper()
	w := g.world()
	e := evaluator{namespaces: w.namespaces, policies: policiesOf(t, g, w)}
	for _, from := range w.pods {
		for _, to := range w.pods[:2] {
			for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
				for _, port := range []int32{80, 81, 8080} {
					c := traffic{from: from, to: to, protocol: protocol, port: port}
					in, out := w.promises(c)
					if e.ingress(c) != in || e.egress(c) != out {
						t.Fatalf("%s: from %s/%s %v to %s/%s %v, %s %d: ingress %t, want %t; egress %t, want %t\n%s", name,
							from.Namespace, from.Name, from.Labels, to.Namespace, to.Name, to.Labels, protocol, port,
							e.ingress(c), in, e.egress(c), out, w.describe(t))
					}
					if in && out {
						allowed++
					} else {
						denied++
					}
				}
			}
		}
	}
	return allowed, denied
}

// policiesOf returns the policies of all Services, as the controller creates them one after the other.
func policiesOf(t *testing.T, g *generator, w *world) []*networkingv1.NetworkPolicy {
	t.Helper()
	taken := map[types.NamespacedName]bool{}
	var all []*networkingv1.NetworkPolicy
	for _, service := range w.services {
		input := w.input(service)
		input.Taken = taken
		result := Desired(Read(service), input, w.config)
		g.shuffle(service, &input)
		if again := Desired(Read(service), input, w.config); !reflect.DeepEqual(again.Policies, result.Policies) {
			t.Fatalf("another order results in other policies\n%s", w.describe(t))
		}
		names := map[types.NamespacedName]bool{}
		for _, policy := range result.Policies {
			key := types.NamespacedName{Namespace: policy.Namespace, Name: policy.Name}
			if taken[key] || names[key] {
				t.Fatalf("%s exists twice\n%s", key, w.describe(t))
			}
			names[key] = true
		}
		for name := range names {
			taken[name] = true
		}
		all = append(all, result.Policies...)
	}
	return all
}

// promises returns, based on the documents alone, whether ingress and egress of the traffic are allowed.
func (w *world) promises(t traffic) (in, out bool) {
	for _, service := range w.services {
		namespace := w.namespaces[service.Namespace]
		handled := len(w.config.NamespaceSelectors) == 0 || w.config.NamespaceSelectors[0].Matches(labels.Set(namespace.Labels))
		if service.Namespace != t.to.Namespace || !selects(&metav1.LabelSelector{MatchLabels: service.Spec.Selector}, t.to.Labels) ||
			len(service.Spec.Selector) == 0 || namespace.Terminating || !handled {
			continue
		}
		if w.promisesPods(service, t) || w.promisesIngress(service, t) || w.promisesIstio(service, t) {
			in, out = true, true
		}
		if text, found := service.Annotations[AnnotationFromWorld]; found && (text == "[]" || listHas(text, t)) {
			in = true
		}
	}
	return in, out
}

// promisesPods reports whether the labels of the Pods allow the traffic.
func (w *world) promisesPods(service *corev1.Service, t traffic) bool {
	prefix := "networking.resources.gardener.cloud/to-"
	if t.from.Namespace != service.Namespace {
		if !w.isPeer(service, t.from.Namespace) {
			return false
		}
		if alias, found := service.Annotations[AnnotationNamespaceAlias]; found {
			prefix += alias + "-"
		} else {
			prefix += service.Namespace + "-"
		}
	}
	for key, text := range service.Annotations {
		if alias, ok := strings.CutSuffix(key, "-allowed-ports"); ok {
			alias = strings.TrimPrefix(alias, "networking.resources.gardener.cloud/from-")
			if t.from.Labels[prefix+alias] == "allowed" && listHas(text, t) {
				return true
			}
		}
	}
	return slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool {
		key := fmt.Sprintf("%s%s-%s-%s", prefix, service.Name, strings.ToLower(string(port.Protocol)), port.TargetPort.String())
		return t.from.Labels[key] == "allowed" && leads(port, t)
	})
}

func (w *world) isPeer(service *corev1.Service, namespace string) bool {
	var selectors []metav1.LabelSelector
	_ = json.Unmarshal([]byte(service.Annotations[AnnotationNamespaceSelectors]), &selectors)
	return !w.namespaces[namespace].Terminating && slices.ContainsFunc(selectors, func(selector metav1.LabelSelector) bool {
		return selects(&selector, w.namespaces[namespace].Labels)
	})
}

func (w *world) promisesIngress(service *corev1.Service, t traffic) bool {
	controller := w.config.IngressController
	if controller == nil || t.from.Namespace != controller.Namespace || w.namespaces[controller.Namespace].Terminating ||
		!selects(&controller.Selector, t.from.Labels) {
		return false
	}
	return slices.ContainsFunc(w.ingresses, func(ingress *networkingv1.Ingress) bool {
		backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
		return ingress.Namespace == service.Namespace && backend.Name == service.Name &&
			slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool {
				return (port.Name == backend.Port.Name || backend.Port.Name == "" && port.Port == backend.Port.Number) && leads(port, t)
			})
	})
}

func (w *world) promisesIstio(service *corev1.Service, t traffic) bool {
	return slices.ContainsFunc(w.virtualServices, func(virtualService *VirtualService) bool {
		destination := virtualService.Destinations[0]
		selector := w.gateways[virtualService.Gateways[0]]
		return virtualService.Namespace == service.Namespace && destination.Service == service.Name &&
			len(selector) > 0 && selects(&metav1.LabelSelector{MatchLabels: selector}, t.from.Labels) &&
			!w.namespaces[t.from.Namespace].Terminating &&
			slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool {
				return port.Port == destination.Port && leads(port, t)
			})
	})
}

func leads(port corev1.ServicePort, t traffic) bool {
	return port.Protocol == t.protocol && isPort(port.TargetPort, 0, t)
}

func listHas(text string, t traffic) bool {
	var ports []networkingv1.NetworkPolicyPort
	_ = json.Unmarshal([]byte(text), &ports)
	return len(ports) > 0 && matchesPort(ports, t)
}

// describe returns the whole cluster as text, for debugging.
func (w *world) describe(t *testing.T) string {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{
		"namespaces": w.namespaces, "services": w.services, "ingresses": w.ingresses, "virtualServices": w.virtualServices,
		"gateways": fmt.Sprint(w.gateways), "ingressController": w.config.IngressController,
	}, "", " ")
	must(t, err)
	return string(text)
}

// generator generates random clusters. It uses few names, so that names of policies and labels collide.
type generator struct{ *rand.Rand }

func one[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

func (g *generator) often(percent int) bool { return g.IntN(100) < percent }

var (
	namespaceNames = []string{"a", "b", "a-b", "istio"}
	serviceNames   = []string{"c", "b-c", "x"}
)

func (g *generator) world() *world {
	w := newWorld()
	for _, name := range namespaceNames {
		w.namespaces[name] = Namespace{
			Labels: map[string]string{corev1.LabelMetadataName: name, "role": one(g, "x", "y")}, Terminating: g.often(10),
		}
	}
	if g.often(20) {
		w.config.NamespaceSelectors = []labels.Selector{labels.SelectorFromSet(labels.Set{"role": "x"})}
	}
	if g.often(50) {
		w.config.IngressController = &Pods{Namespace: one(g, namespaceNames...), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}}
	}
	for range 1 + g.IntN(4) {
		service := g.service()
		if !slices.ContainsFunc(w.services, func(other *corev1.Service) bool {
			return other.Namespace == service.Namespace && other.Name == service.Name
		}) {
			w.services = append(w.services, service)
		}
	}
	for _, name := range []string{"first", "second"} {
		w.gateways[types.NamespacedName{Namespace: "a", Name: name}] = one(g, map[string]string{"gateway": name}, map[string]string{"gateway": "first"}, nil)
	}
	for range g.IntN(3) {
		w.virtualServices = append(w.virtualServices, &VirtualService{
			ObjectMeta:   metav1.ObjectMeta{Namespace: one(g, namespaceNames...)},
			Gateways:     []types.NamespacedName{{Namespace: "a", Name: one(g, "first", "second", "missing")}},
			Destinations: []Destination{{Service: one(g, serviceNames...), Port: one(g, int32(1), 2, 3)}},
		})
		backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: one(g, serviceNames...), Port: one(g, networkingv1.ServiceBackendPort{Number: 1}, networkingv1.ServiceBackendPort{Name: "two"}),
		}}
		ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: one(g, namespaceNames...), Name: fmt.Sprint(g.IntN(100))}}
		ingress.Spec.Rules = []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Backend: backend}}},
		}}}
		w.ingresses = append(w.ingresses, ingress)
	}
	service := one(g, w.services...)
	w.pods = append(w.pods, g.server(service), g.client("client-1", service), g.client("client-2", one(g, w.services...)))
	return w
}

func (g *generator) service() *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: one(g, namespaceNames...), Name: one(g, serviceNames...), Annotations: map[string]string{},
	}}
	service.Spec.Selector = one(g, map[string]string{"app": "one"}, map[string]string{"app": "two"}, map[string]string{"app": "one", "tier": "1"}, nil)
	for i, name := range []string{"one", "two", "three"}[:1+g.IntN(3)] {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: name, Port: int32(i + 1), Protocol: one(g, corev1.ProtocolTCP, corev1.ProtocolUDP),
			TargetPort: one(g, intstr.FromInt32(80), intstr.FromInt32(81), intstr.FromString("web")),
		})
	}
	if g.often(60) {
		service.Annotations[AnnotationNamespaceSelectors] = one(g, `[]`, `[{}]`, `[{"matchLabels":{"role":"x"}}]`,
			`[{"matchLabels":{"kubernetes.io/metadata.name":"b"}},{"matchExpressions":[{"key":"role","operator":"NotIn","values":["x"]}]}]`,
			`[{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["a","istio"]}]}]`)
	}
	if g.often(30) {
		service.Annotations[AnnotationNamespaceAlias] = one(g, "alias", "a", "a-b")
	}
	for _, name := range []string{"all", "c-tcp-80"} {
		if g.often(30) {
			service.Annotations[domain+"from-"+name+"-allowed-ports"] = one(g, `[]`, `[{"port":80}]`, `[{"port":"web","protocol":"UDP"},{"port":81,"protocol":"TCP"}]`,
				`[{"port":80,"endPort":82,"protocol":"TCP"},{"port":80,"protocol":"TCP"}]`)
		}
	}
	if g.often(20) {
		service.Annotations[AnnotationFromWorld] = one(g, `[]`, `[{"port":80}]`, `[{"port":"web","protocol":"UDP"},{"port":81,"endPort":82}]`)
	}
	return service
}

// server returns a Pod, which usually belongs to a Service.
func (g *generator) server(service *corev1.Service) *corev1.Pod {
	pod := g.pod("server")
	if g.often(90) {
		pod.Namespace = service.Namespace
		maps.Copy(pod.Labels, service.Spec.Selector)
	}
	return pod
}

// client returns a Pod, which usually has labels that may refer to a Service.
func (g *generator) client(name string, service *corev1.Service) *corev1.Pod {
	pod := g.pod(name)
	if g.often(30) {
		pod.Namespace = service.Namespace
	}
	for _, port := range service.Spec.Ports {
		prefix := domain + "to-"
		if pod.Namespace != service.Namespace {
			prefix += one(g, service.Namespace, "alias", service.Annotations[AnnotationNamespaceAlias]) + "-"
		}
		pod.Labels[prefix+service.Name+"-"+strings.ToLower(string(port.Protocol))+"-"+port.TargetPort.String()] = "allowed"
		pod.Labels[prefix+"all"] = "allowed"
	}
	return pod
}

func (g *generator) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: one(g, namespaceNames...), Name: name, Labels: map[string]string{
		"app": one(g, "one", "two", "nginx"), "tier": one(g, "1", "2"), "gateway": one(g, "first", "second", "none"),
	}}}
	for range g.IntN(4) {
		key := domain + "to-" + one(g, "", "", "a-", "a-b-", "alias-", "b-") + one(g, "c-tcp-80", "b-c-tcp-80", "c-udp-web", "b-c-tcp-web", "x-tcp-81", "all")
		pod.Labels[key] = one(g, "allowed", "allowed", "allowed", "denied")
	}
	pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{
		Name: one(g, "web", "other"), Protocol: one(g, corev1.ProtocolTCP, corev1.ProtocolUDP), ContainerPort: 8080,
	}}}}
	return pod
}

// shuffle changes the order of all lists.
func (g *generator) shuffle(service *corev1.Service, input *Input) {
	swap(g, service.Spec.Ports)
	input.Ingresses, input.VirtualServices = slices.Clone(input.Ingresses), slices.Clone(input.VirtualServices)
	swap(g, input.Ingresses)
	swap(g, input.VirtualServices)
	for _, gateway := range input.Gateways {
		swap(g, gateway.Namespaces)
	}
}

func swap[T any](g *generator, values []T) {
	g.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
}
