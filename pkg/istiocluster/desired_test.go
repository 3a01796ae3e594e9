package istiocluster

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// documents reads a file of manifests.
func documents(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	var all []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		converted, err := yaml.YAMLToJSON(document)
		must(t, err)
		object := &unstructured.Unstructured{}
		if string(converted) == "null" {
			continue
		}
		must(t, object.UnmarshalJSON(converted))
		all = append(all, object)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desiredOf returns the desired EnvoyFilters for a file of manifests, which are read in reverse order if requested.
func desiredOf(t *testing.T, path string, reverse bool) []*unstructured.Unstructured {
	t.Helper()
	rules := map[string][]*Rule{}
	services := map[types.NamespacedName]Service{}
	var ingresses []string
	manifests := documents(t, path)
	if reverse {
		slices.Reverse(manifests)
	}
	for _, one := range manifests {
		switch one.GetKind() {
		case "Namespace":
			if IsIngress(one.GetLabels()) {
				ingresses = append(ingresses, one.GetName())
			}
		case "DestinationRule":
			rules[one.GetNamespace()] = append(rules[one.GetNamespace()], ReadRule(one))
		case "Service":
			service := &corev1.Service{}
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, service))
			read := ReadService(service)
			services[read.NamespacedName] = read
		}
	}
	var filters []*unstructured.Unstructured
	for name, list := range rules {
		filters = append(filters, Desired(Source{Name: name, UID: types.UID("uid-of-" + name), Rules: list, Services: services}, ingresses)...)
	}
	slices.SortFunc(filters, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return filters
}

// TestGolden compares the EnvoyFilters for each file of manifests, independent of the order of the manifests.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.want.yaml")
	must(t, err)
	if len(files) < 5 {
		t.Fatalf("found only %d files", len(files))
	}
	for _, file := range files {
		input := strings.TrimSuffix(file, ".want.yaml") + ".yaml"
		for _, reverse := range []bool{false, true} {
			want := documents(t, file)
			got := desiredOf(t, input, reverse)
			if len(got) != len(want) {
				t.Errorf("%s: got %d EnvoyFilters, want %d", input, len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if !reflect.DeepEqual(got[i].Object, want[i].Object) {
					text, err := yaml.Marshal(got[i].Object)
					must(t, err)
					t.Errorf("%s: got\n%s", input, text)
				}
			}
		}
	}
}

// TestExports checks that both lists must contain the namespace.
func TestExports(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "~": "", "*": "ingress own", ".": "own", "ingress": "ingress", "a,ingress": "ingress", "a, own ,b": "own", "~,ingress": "ingress", "other": "",
	} {
		exports := ReadService(serviceExporting(text)).Exports
		var got []string
		for _, namespace := range []string{"ingress", "own"} {
			if exports.include(namespace, "own") {
				got = append(got, namespace)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is visible in %q, want %q", text, got, want)
		}
	}
	if Exports(nil).include("a", "a") {
		t.Error("a resource that is not exported is visible")
	}
}

func serviceExporting(namespaces string) *corev1.Service {
	service := &corev1.Service{}
	service.Namespace, service.Name = "own", "shop"
	service.Annotations = map[string]string{AnnotationExportTo: namespaces}
	return service
}

// TestHosts checks which Service a host refers to.
func TestHosts(t *testing.T) {
	for host, want := range map[string]string{
		"shop": "own/shop", "shop.other.svc.cluster.local": "other/shop", "": "/", "*": "/", "*.own.svc.cluster.local": "/", "shop.own": "/",
		"shop.own.svc": "/", "example.org": "/", "a.b.c.svc.cluster.local": "/", ".svc.cluster.local": "/", "a..svc.cluster.local": "/", ".a.svc.cluster.local": "/",
	} {
		if got := serviceOf(host, "own").String(); got != want {
			t.Errorf("%q stands for %q, want %q", host, got, want)
		}
	}
}

// TestPortsThatSpeakHTTP2 checks that the application protocol decides if it is set, and otherwise the prefix of the name.
func TestPortsThatSpeakHTTP2(t *testing.T) {
	for _, test := range []struct {
		name, protocol string
		want           bool
	}{
		{name: ""}, {name: "http"}, {name: "http2", want: true}, {name: "HTTP2-web", want: true}, {name: "grpc", want: true}, {name: "gRPC-x", want: true},
		{name: "grpc-web", want: true}, {name: "http2web"}, {name: "tls-http2"},
		{name: "http2", protocol: "http"}, {name: "http", protocol: "HTTP2", want: true}, {protocol: "grpc", want: true}, {protocol: "grpc-Web", want: true},
		{protocol: "kubernetes.io/h2c", want: true}, {protocol: "grpc-x"}, {name: "grpc", protocol: "kubernetes.io/ws"},
	} {
		port := corev1.ServicePort{Name: test.name}
		if test.protocol != "" {
			port.AppProtocol = &test.protocol
		}
		if got := speaksHTTP2(&port); got != test.want {
			t.Errorf("%q with %q: got %t", test.name, test.protocol, got)
		}
	}
	empty := ""
	if speaksHTTP2(&corev1.ServicePort{Name: "http2", AppProtocol: &empty}) {
		t.Error("an empty protocol does not count as set")
	}
}

// TestNames converts names of namespaces to names of EnvoyFilters and back.
func TestNames(t *testing.T) {
	if got := SourceOf(FilterName("shop")); got != "shop" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"", "shop", "-cluster-configuration", "cluster-configuration"} {
		if got := SourceOf(name); got != "" {
			t.Errorf("%q is derived from %q", name, got)
		}
	}
}

// TestDigest checks that fields that other clients may add do not count, and that all other fields do.
func TestDigest(t *testing.T) {
	filter := func() *unstructured.Unstructured { return filter(Source{Name: "a", UID: "1"}, "b", []any{"x"}) }
	base := Digest(filter())
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		same   bool
	}{
		"their label": {func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{LabelManagedBy: ManagedBy, "a": "b"})
		}, true},
		"their annotation": {func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) }, true},
		"label":            {func(o *unstructured.Unstructured) { o.SetLabels(nil) }, false},
		"owner":            {func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }, false},
		"more in the spec": {func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"configPatches": []any{"x"}, "priority": int64(1)}
		}, false},
		"patches": {func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"configPatches": []any{}} }, false},
	} {
		object := filter()
		test.change(object)
		if (Digest(object) == base) != test.same {
			t.Errorf("%s: the digest is wrong", name)
		}
	}
}

// FuzzReadRule checks that no object causes a panic.
func FuzzReadRule(f *testing.F) {
	f.Add([]byte(`{"kind":"DestinationRule","apiVersion":"v1","metadata":{"namespace":"a"},"spec":{"host":"a","exportTo":["*"],"trafficPolicy":{"portLevelSettings":[{"port":{"number":1},"connectionPool":{"http":{"useClientProtocol":true}}}]}}}`))
	f.Add([]byte(`{"kind":"DestinationRule","apiVersion":"v1","spec":{"host":["a"],"exportTo":"*","subsets":{},"trafficPolicy":{"portLevelSettings":[1,null,{"port":1}],"connectionPool":[]}}}`))
	f.Add([]byte(`{"kind":"DestinationRule","apiVersion":"v1","spec":[]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(content) != nil {
			return
		}
		rule := ReadRule(object)
		service := Service{NamespacedName: rule.Service, Exports: Exports{"*"}, Ports: []Port{{Number: 80}}}
		source := Source{Name: "a", Rules: []*Rule{rule}, Services: map[types.NamespacedName]Service{rule.Service: service}}
		for _, one := range Desired(source, []string{"b"}) {
			if one.GetNamespace() != "b" || len(rule.Exports) == 0 {
				t.Errorf("got %v", one)
			}
		}
	})
}
