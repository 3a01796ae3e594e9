package netpol

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// world is the complete state of a cluster.
type world struct {
	config          Config
	onlyWhilePods   bool
	services        []*corev1.Service
	namespaces      map[string]Namespace
	ingresses       []*networkingv1.Ingress
	virtualServices []*VirtualService
	gateways        map[types.NamespacedName]map[string]string
	pods            []*corev1.Pod
	existing        []*networkingv1.NetworkPolicy
	istioUnknown    bool
}

func newWorld() *world {
	return &world{namespaces: map[string]Namespace{}, gateways: map[types.NamespacedName]map[string]string{}}
}

// desired returns the result for a Service.
func (w *world) desired(service *corev1.Service) *Result {
	return Desired(Read(service), w.input(service), w.config)
}

func (w *world) input(service *corev1.Service) Input {
	input := Input{
		Namespaces: w.namespaces, Ingresses: w.ingresses, VirtualServices: w.virtualServices,
		Gateways: map[types.NamespacedName]Gateway{}, IstioUnknown: w.istioUnknown,
	}
	for name, selector := range w.gateways {
		gateway := Gateway{Selector: selector}
		for _, pod := range w.pods {
			if labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
				gateway.Namespaces = append(gateway.Namespaces, pod.Namespace)
			}
		}
		input.Gateways[name] = gateway
	}
	if w.onlyWhilePods {
		input.HasPods = func(namespace, key string) bool {
			for _, pod := range w.pods {
				if pod.Namespace == namespace && pod.Labels[key] == LabelValue {
					return true
				}
			}
			return false
		}
	}
	for _, policy := range w.existing {
		if ServiceOf(policy) == (types.NamespacedName{Namespace: service.Namespace, Name: service.Name}) {
			input.Existing = append(input.Existing, ExistingOf(policy))
		}
	}
	return input
}

// readWorld reads a file of manifests. The kind Configuration is controllers.networkPolicy of the configuration.
func readWorld(t *testing.T, path string) *world {
	t.Helper()
	w := newWorld()
	for _, document := range documents(t, path) {
		w.take(t, document)
	}
	return w
}

func (w *world) take(t *testing.T, document *unstructured.Unstructured) {
	t.Helper()
	switch document.GetKind() {
	case "Configuration":
		settings := into[configv1alpha1.NetworkPolicyConfiguration](t, document)
		w.onlyWhilePods = settings.OnlyWhilePodsExist
		for i := range settings.NamespaceSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&settings.NamespaceSelectors[i])
			must(t, err)
			w.config.NamespaceSelectors = append(w.config.NamespaceSelectors, selector)
		}
		if controller := settings.IngressControllerSelector; controller != nil {
			w.config.IngressController = &Pods{Namespace: controller.Namespace, Selector: controller.PodSelector}
		}
	case "Namespace":
		w.namespaces[document.GetName()] = Namespace{Labels: document.GetLabels(), Terminating: document.GetDeletionTimestamp() != nil}
	case "Service":
		w.services = append(w.services, into[corev1.Service](t, document))
	case "Ingress":
		w.ingresses = append(w.ingresses, into[networkingv1.Ingress](t, document))
	case "VirtualService":
		w.virtualServices = append(w.virtualServices, ReadVirtualService(document))
	case "Gateway":
		w.gateways[types.NamespacedName{Namespace: document.GetNamespace(), Name: document.GetName()}] = ReadSelector(document)
	case "Pod":
		w.pods = append(w.pods, into[corev1.Pod](t, document))
	default:
		t.Fatalf("unexpected kind %q", document.GetKind())
	}
}

// documents reads a file of YAML documents.
func documents(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	var all []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		one := &unstructured.Unstructured{}
		must(t, one.UnmarshalJSON(raw)) // decodes integers to int64, like a client
		all = append(all, one)
	}
}

func into[T any](t *testing.T, document *unstructured.Unstructured) *T {
	t.Helper()
	result := new(T)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(document.Object, result))
	return result
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
