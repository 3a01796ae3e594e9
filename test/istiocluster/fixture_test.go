// Package istiocluster tests the Istio cluster configuration controller on a real API server.
package istiocluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/pkg/istiocluster"
	"github.com/trellis-k8s/trellis/pkg/istiocluster/controller"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

// shared is for tests that restrict the controller to their own namespaces. It has the kinds of Istio.
var (
	shared  controlplane.Shared
	defined sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

const (
	rules   = "destinationrules"
	filters = "envoyfilters"
)

// install defines a kind of Istio.
func install(t *testing.T, config *rest.Config, plural string) {
	t.Helper()
	kind, version := "DestinationRule", "v1beta1"
	if plural == filters {
		kind, version = "EnvoyFilter", "v1alpha3"
	}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".networking.istio.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "networking.istio.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
	kit.Define(t, config, definition)
}

// fixture is a cluster, with a namespace for DestinationRules and one for gateways.
type fixture struct {
	*testing.T
	ctx             context.Context
	config          *rest.Config
	client          client.Client
	requests        *kit.Requests
	source, ingress string
}

// newFixture is for a cluster with the kinds of Istio.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := shared.Get(t).Config()
	defined.Do(func() {
		install(t, config, rules)
		install(t, config, filters)
	})
	return newFixtureIn(t, config)
}

func newFixtureIn(t *testing.T, config *rest.Config) *fixture {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	kit.Must(t, err)
	f := &fixture{T: t, ctx: t.Context(), config: config, client: c, requests: &kit.Requests{}}
	f.source = kit.NewNamespace(t, c, "source", nil)
	f.ingress = kit.NewNamespace(t, c, "ingress", map[string]string{istiocluster.LabelRole: istiocluster.RoleIstioIngress})
	return f
}

// run runs a controller for some namespaces until the returned function is called or the test ends.
func (f *fixture) run(namespaces ...string) (stop func()) {
	f.Helper()
	config := rest.CopyConfig(f.config)
	config.Wrap(f.requests.Wrap)
	mgr, err := manager.New(config, kit.ManagerOptions(f.client.Scheme()))
	kit.Must(f, err)
	objects, err := target.NewObjects(config, mgr.GetHTTPClient())
	kit.Must(f, err)
	kit.Must(f, controller.NewReconciler(&controller.Reconciler{
		Cache:   kit.NewCache(f, mgr, controller.CacheOptions(), namespaces...),
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects, Clock: clock.RealClock{},
		Options: controller.Options{Namespaces: namespaces, ConcurrentSyncs: 5},
	}).AddToManager(mgr))
	return kit.Run(f, mgr)
}

// rule returns a DestinationRule for a Service of its namespace that is visible everywhere.
func rule(namespace, service string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"host": service, "exportTo": []any{"*"}}}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1beta1", Kind: "DestinationRule"})
	object.SetNamespace(namespace)
	object.SetName(service)
	return object
}

// service creates a Service with port 80 that is visible everywhere.
func (f *fixture) service(namespace, name string) *corev1.Service {
	f.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{istiocluster.AnnotationExportTo: "*"},
	}}
	service.Spec.Ports = []corev1.ServicePort{{Name: "web", Port: 80}}
	kit.Must(f, f.client.Create(f.ctx, service))
	return service
}

func (f *fixture) patch(object client.Object, change map[string]any) {
	f.Helper()
	body, err := json.Marshal(change)
	kit.Must(f, err)
	patched, ok := object.DeepCopyObject().(client.Object) // because the answer overwrites it
	if !ok {
		f.Fatalf("%T is not a client.Object", object)
	}
	kit.Must(f, f.client.Patch(f.ctx, patched, client.RawPatch(types.MergePatchType, body)))
}

// filter reads an EnvoyFilter. It returns nil if it does not exist.
func (f *fixture) filter(namespace, source string) *unstructured.Unstructured {
	f.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(istiocluster.EnvoyFilterKind)
	if f.client.Get(f.ctx, types.NamespacedName{Namespace: namespace, Name: istiocluster.FilterName(source)}, object) != nil {
		return nil
	}
	return object
}

// clusters returns the names of the clusters that an EnvoyFilter has settings for, except the settings that all of them have in common.
func (f *fixture) clusters(namespace, source string) []string {
	f.Helper()
	object := f.filter(namespace, source)
	if object == nil {
		return nil
	}
	patches, _, err := unstructured.NestedSlice(object.Object, "spec", "configPatches")
	kit.Must(f, err)
	names := []string{}
	for _, one := range patches {
		fields, ok := one.(map[string]any)
		if !ok {
			f.Fatalf("the patch %v is not an object", one)
		}
		name, _, err := unstructured.NestedString(fields, "match", "cluster", "name")
		kit.Must(f, err)
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(name, "outbound|"), ".svc.cluster.local"))
	}
	return names
}

// eventually waits until an EnvoyFilter has settings for exactly the given clusters. Without clusters, the EnvoyFilter must not exist.
func (f *fixture) eventually(reason, namespace, source string, want ...string) {
	f.Helper()
	kit.Eventually(f, reason, func() string {
		if got := f.clusters(namespace, source); !slices.Equal(got, want) || (got == nil) != (want == nil) {
			return fmt.Sprintf("the settings are for %q, want %q", got, want)
		}
		return ""
	})
}

// quiet waits until the controller has finished its work, which the EnvoyFilter of a further namespace shows. It returns the
// controller's requests since the last Forget that are not watches.
func (f *fixture) quiet(other string) []string {
	f.Helper()
	service := f.service(other, "barrier"+fmt.Sprint(time.Now().UnixNano()))
	kit.Must(f, f.client.Create(f.ctx, rule(other, service.Name)))
	kit.EventuallyTrue(f, "settings for another namespace", func() bool {
		return slices.Contains(f.clusters(f.ingress, other), "80||"+service.Name+"."+other)
	})
	var requests []string
	for _, request := range f.requests.Single() {
		if !strings.HasSuffix(request.Path, "/"+istiocluster.FilterName(other)) {
			requests = append(requests, request.String())
		}
	}
	return requests
}
