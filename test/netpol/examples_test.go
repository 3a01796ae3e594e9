package netpol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/netpol/controller"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestExamples creates the files of pkg/netpol/testdata one after the other in one cluster. It waits until the cluster has exactly the
// policies of the file.
func TestExamples(t *testing.T) {
	t.Parallel()
	config := newControlPlane(t)
	install(t, config)
	files, err := filepath.Glob("../../pkg/netpol/testdata/*.want.yaml")
	kit.Must(t, err)
	if len(files) < 20 {
		t.Fatalf("found only %d examples", len(files))
	}
	namespaces := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".want.yaml")
		if name == "matches-everything" {
			continue // a real cluster has more namespaces, which would get policies too
		}
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, config)
			example := readExample(t, strings.TrimSuffix(file, ".want.yaml")+".yaml")
			stop := f.run(example.options)
			f.create(example, namespaces)
			kit.Eventually(t, "the policies of the example", func() string { return f.differFrom(documents(t, file)) })
			for _, object := range example.objects {
				kit.Must(t, client.IgnoreNotFound(f.client.Delete(f.ctx, object)))
			}
			kit.Eventually(t, "all policies are deleted", func() string { return f.differFrom(nil) })
			stop()
		})
	}
}

// TestExampleFile checks that the example of the documentation works as described.
func TestExampleFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := []string{"webshop", "monitoring"}
	f.run(controller.Options{Namespaces: all})
	for _, document := range documents(t, "../../examples/network-policies.yaml") {
		if err := f.client.Create(f.ctx, document); !apierrors.IsAlreadyExists(err) { // the test may run more than once
			kit.Must(t, err)
		}
	}
	f.eventually("its policies", all, slices.Concat(
		[]string{"webshop/deny-all", "webshop/ingress-to-shop-from-world"},
		pairIn("webshop", "shop-tcp-8080"), pairIn("webshop", "database-tcp-5432"), pairIn("webshop", "shop-tcp-9090-via-scraper"),
		[]string{"webshop/ingress-to-shop-tcp-8080-from-monitoring", "monitoring/egress-to-webshop-shop-tcp-8080"},
		[]string{"webshop/ingress-to-shop-tcp-9090-via-scraper-from-monitoring", "monitoring/egress-to-webshop-shop-tcp-9090-via-scraper"},
	)...)
	to := func(policy *networkingv1.NetworkPolicy) string {
		for key := range policy.Spec.PodSelector.MatchLabels {
			return strings.TrimPrefix(key, domain)
		}
		return ""
	}
	if got := to(f.policy("monitoring", "egress-to-webshop-shop-tcp-9090-via-scraper")); got != "to-all-scraper" {
		t.Errorf("the scraper needs the label %s, want to-all-scraper", got)
	}
	if got := to(f.policy("webshop", "egress-to-database-tcp-5432")); got != "to-database-tcp-5432" {
		t.Errorf("the shop needs the label %s, want to-database-tcp-5432", got)
	}
}

// example is a file of manifests.
type example struct {
	options    controller.Options
	namespaces []*unstructured.Unstructured
	objects    []*unstructured.Unstructured
}

func readExample(t *testing.T, path string) example {
	t.Helper()
	var result example
	for _, document := range documents(t, path) {
		switch document.GetKind() {
		case "Configuration":
			var settings configv1alpha1.NetworkPolicyConfiguration
			kit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(document.Object, &settings))
			result.options.OnlyWhilePodsExist = settings.OnlyWhilePodsExist
			for i := range settings.NamespaceSelectors {
				selector, err := metav1.LabelSelectorAsSelector(&settings.NamespaceSelectors[i])
				kit.Must(t, err)
				result.options.Config.NamespaceSelectors = append(result.options.Config.NamespaceSelectors, selector)
			}
			if one := settings.IngressControllerSelector; one != nil {
				result.options.Config.IngressController = &netpol.Pods{Namespace: one.Namespace, Selector: one.PodSelector}
			}
		case "Namespace":
			result.namespaces = append(result.namespaces, document)
		default:
			result.objects = append(result.objects, document)
		}
	}
	return result
}

// create creates all objects of an example. Namespaces of previous examples still exist. known contains their names.
func (f *fixture) create(example example, known map[string]bool) {
	f.Helper()
	wanted := map[string]map[string]string{}
	for _, namespace := range example.namespaces {
		wanted[namespace.GetName()] = namespace.GetLabels()
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		labels := map[string]any{}
		for _, key := range []string{"role", "talks", "handled", "peer"} {
			labels[key] = nil
		}
		for key, value := range wanted[name] {
			labels[key] = value
		}
		f.label(name, labels)
		delete(wanted, name)
	}
	for name, labels := range wanted {
		known[name] = true
		err := f.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		if name != "default" {
			kit.Must(f, err)
		}
	}
	for _, object := range example.objects {
		kit.Must(f, f.client.Create(f.ctx, object.DeepCopy()))
	}
	for _, namespace := range example.namespaces {
		if namespace.GetDeletionTimestamp() != nil {
			kit.Must(f, f.client.Delete(f.ctx, namespace))
			delete(known, namespace.GetName()) // it cannot be used again
		}
	}
}

// differFrom describes how the policies of the cluster and the warnings about Services differ from the wanted ones.
func (f *fixture) differFrom(want []*unstructured.Unstructured) string {
	f.Helper()
	var list networkingv1.NetworkPolicyList
	kit.Must(f, f.client.List(f.ctx, &list))
	live := map[string]string{}
	for i := range list.Items {
		live[list.Items[i].Namespace+"/"+list.Items[i].Name] = netpol.Digest(&list.Items[i])
	}
	for _, document := range want {
		if document.GetKind() == "Problems" {
			if text := f.warningsMiss(fmt.Sprint(document.Object["text"])); text != "" {
				return text
			}
			continue
		}
		policy, key := &networkingv1.NetworkPolicy{}, document.GetNamespace()+"/"+document.GetName()
		kit.Must(f, runtime.DefaultUnstructuredConverter.FromUnstructured(document.Object, policy))
		if live[key] != netpol.Digest(policy) {
			return key + " is missing or different"
		}
		delete(live, key)
	}
	if len(live) > 0 {
		return fmt.Sprintf("unexpected policies: %q", slices.Sorted(maps.Keys(live)))
	}
	return ""
}

func (f *fixture) warningsMiss(problems string) string {
	var list eventsv1.EventList
	kit.Must(f, f.client.List(f.ctx, &list))
	for problem := range strings.Lines(problems) {
		reason, text, _ := strings.Cut(strings.TrimSpace(problem), ": ")
		if !slices.ContainsFunc(list.Items, func(event eventsv1.Event) bool {
			return event.Reason == reason && strings.Contains(event.Note, text[:min(len(text), 60)])
		}) {
			return "no Event found for " + problem
		}
	}
	return ""
}

func documents(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	kit.Must(t, err)
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
		kit.Must(t, one.UnmarshalJSON(raw))
		all = append(all, one)
	}
}
