// Package garbage tests the garbage collector on a real API server.
package garbage

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/garbagecollector"
	"github.com/trellis-k8s/trellis/pkg/references"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var (
	shared      controlplane.Shared
	installOnce sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// fixture is a namespace with its own collector. The test triggers every run. The collector's clock is an hour ahead, so that all
// objects are old enough to be deleted.
type fixture struct {
	*testing.T
	ctx       context.Context
	client    client.Client
	namespace string
	collector *garbagecollector.Collector
	clock     *clocktesting.FakeClock
	registry  *prometheus.Registry
	requests  *requestLog
	log       *lines
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := shared.Get(t).Config()
	config.QPS = -1
	installOnce.Do(func() { installDefinitions(t, config) })
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, resourcesv1alpha1.AddToScheme(scheme))
	must(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	f := &fixture{
		T: t, ctx: t.Context(), client: c, clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour)),
		registry: prometheus.NewRegistry(), requests: &requestLog{}, log: &lines{},
	}
	f.namespace = f.newNamespace()
	f.collector = f.newCollector(config, f.namespace)
	return f
}

func (f *fixture) newCollector(config *rest.Config, namespaces ...string) *garbagecollector.Collector {
	f.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(f.requests.wrap)
	httpClient, err := rest.HTTPClientFor(config)
	must(f, err)
	objects, err := target.NewObjects(config, httpClient)
	must(f, err)
	metadataClient, err := metadata.NewForConfigAndClient(config, httpClient)
	must(f, err)
	return garbagecollector.New(garbagecollector.Collector{
		Metadata: metadataClient, Dynamic: objects.DynamicClient(), Kinds: objects, Metrics: garbagecollector.NewMetrics(f.registry), Clock: f.clock,
		Log:     funcr.New(f.log.add, funcr.Options{}),
		Options: garbagecollector.Options{SyncPeriod: time.Hour, Namespaces: namespaces},
	})
}

// installDefinitions defines ManagedResources and Prometheuses.
func installDefinitions(t *testing.T, config *rest.Config) {
	t.Helper()
	kit.DefineManagedResources(t, config)
	kit.Define(t, config, prometheusDefinition())
}

func prometheusDefinition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheuses.monitoring.coreos.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "monitoring.coreos.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "prometheuses", Singular: "prometheus", Kind: "Prometheus", ListKind: "PrometheusList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

func (f *fixture) newNamespace() string {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "garbage-"}}
	must(f, f.client.Create(f.ctx, namespace))
	return namespace.Name
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, prefix+" "+args)
}

func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return ""
	}
	return l.all[len(l.all)-1]
}

// requestLog records the collector's requests and can make them fail.
type requestLog struct {
	mu     sync.Mutex
	all    []*http.Request
	before func(*http.Request) error
	answer func(*http.Request) *http.Response
}

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		l.mu.Lock()
		l.all = append(l.all, request)
		before, answer := l.before, l.answer
		l.mu.Unlock()
		if before != nil {
			if err := before(request); err != nil {
				return nil, err
			}
		}
		if answer != nil {
			if response := answer(request); response != nil {
				return response, nil
			}
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// take returns the requests since the last call.
func (l *requestLog) take() []*http.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

func (l *requestLog) count(method, suffix string) int {
	count := 0
	for _, request := range l.take() {
		if request.Method == method && strings.HasSuffix(request.URL.Path, suffix) {
			count++
		}
	}
	return count
}

var marked = map[string]string{references.LabelKeyGarbageCollectable: references.LabelValueGarbageCollectable}

func (f *fixture) metaOf(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels}
}

// configMaps creates ConfigMaps with the label.
func (f *fixture) configMaps(names ...string) {
	f.Helper()
	for _, name := range names {
		must(f, f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: f.metaOf(name, marked)}))
	}
}

// secrets creates Secrets with the label.
func (f *fixture) secrets(names ...string) {
	f.Helper()
	for _, name := range names {
		must(f, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: f.metaOf(name, marked)}))
	}
}

// pod creates a Pod that refers to ConfigMaps.
func (f *fixture) pod(name string, configMaps ...string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{ObjectMeta: f.metaOf(name, nil), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Image: "a"}}, AutomountServiceAccountToken: new(bool),
	}}
	pod.Annotations = map[string]string{}
	for _, configMap := range configMaps {
		pod.Annotations[references.AnnotationKey(references.KindConfigMap, configMap)] = configMap
	}
	must(f, f.client.Create(f.ctx, pod))
	return pod
}

// collect runs the collector once and expects no error.
func (f *fixture) collect() {
	f.Helper()
	must(f, f.collector.Collect(f.ctx))
}

// left returns the names of the remaining ConfigMaps and Secrets, in order.
func (f *fixture) left() []string {
	f.Helper()
	return f.leftIn(f.namespace)
}

func (f *fixture) leftIn(namespace string) []string {
	f.Helper()
	var names []string
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	must(f, f.client.List(f.ctx, configMaps, client.InNamespace(namespace)))
	must(f, f.client.List(f.ctx, secrets, client.InNamespace(namespace)))
	for _, one := range configMaps.Items {
		names = append(names, one.Name)
	}
	for _, one := range secrets.Items {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names
}

func (f *fixture) wantLeft(names ...string) {
	f.Helper()
	slices.Sort(names)
	if got := f.left(); !slices.Equal(got, names) {
		f.Errorf("the remaining objects are %q, want %q", got, names)
	}
}

// metric returns the value of a metric.
func (f *fixture) metric(name string, labels ...string) float64 {
	f.Helper()
	families, err := f.registry.Gather()
	must(f, err)
	for _, family := range families {
		if family.GetName() != "resource_manager_"+name {
			continue
		}
		for _, metric := range family.GetMetric() {
			matches := true
			for _, pair := range metric.GetLabel() {
				matches = matches && slices.Contains(labels, pair.GetValue())
			}
			if matches {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	f.Errorf("no metric %s %v found", name, labels)
	return 0
}

var errBroken = errors.New("connection broken by the test")

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// kindOf returns the kind that a CustomResourceDefinition of these tests defines.
func kindOf(definition string) schema.GroupKind {
	plural, group, _ := strings.Cut(definition, ".")
	return schema.GroupKind{Group: group, Kind: map[string]string{"managedresources": "ManagedResource", "prometheuses": "Prometheus"}[plural]}
}
