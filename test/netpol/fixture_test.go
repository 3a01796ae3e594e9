// Package netpol tests the network policy controller on a real API server.
package netpol

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	networkingv1client "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/netpol/controller"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

// shared is for tests that restrict the controller to their own namespaces.
var shared controlplane.Shared

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// newControlPlane starts a control plane for a test that uses the whole cluster.
func newControlPlane(t *testing.T) *rest.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	controlPlane, err := controlplane.Start(t.Context(), controlplane.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, controlPlane.Stop()) })
	return controlPlane.Config()
}

const domain = "networking.resources.gardener.cloud/"

// fixture is a cluster, and the namespaces of a test.
type fixture struct {
	*testing.T
	ctx      context.Context
	config   *rest.Config
	client   client.Client
	requests *kit.Requests
	// before is called before each request of the controller. Its error makes the request fail.
	before func(*http.Request) error
}

func newFixture(t *testing.T, config *rest.Config) *fixture {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	kit.Must(t, err)
	return &fixture{T: t, ctx: t.Context(), config: config, client: c, requests: &kit.Requests{}}
}

// run runs a controller until the returned function is called or the test ends.
func (f *fixture) run(options controller.Options) (stop func()) {
	f.Helper()
	config := rest.CopyConfig(f.config)
	config.Wrap(f.requests.Wrap)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if f.before != nil {
				if err := f.before(request); err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(request)
		})
	})
	mgr, err := manager.New(config, kit.ManagerOptions(f.client.Scheme()))
	kit.Must(f, err)
	f.add(mgr, config, options)
	return kit.Run(f, mgr)
}

func (f *fixture) add(mgr manager.Manager, config *rest.Config, options controller.Options) {
	f.Helper()
	policies, err := networkingv1client.NewForConfigAndClient(config, mgr.GetHTTPClient())
	kit.Must(f, err)
	objects, err := target.NewObjects(config, mgr.GetHTTPClient())
	kit.Must(f, err)
	options.ConcurrentSyncs = max(options.ConcurrentSyncs, 5)
	kit.Must(f, controller.NewReconciler(controller.Reconciler{
		Cache:    kit.NewCache(f, mgr, controller.CacheOptions(), options.Namespaces...),
		Policies: policies, Pods: objects.CoreClient(), Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects,
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{}, Options: options,
	}).AddToManager(f.ctx, mgr))
}

// namespaces creates namespaces.
func (f *fixture) namespaces(count int) []string {
	f.Helper()
	var names []string
	for range count {
		names = append(names, kit.NewNamespace(f, f.client, "netpol", nil))
	}
	return names
}

// label changes the labels of a namespace.
func (f *fixture) label(namespace string, values map[string]any) {
	f.Helper()
	f.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, map[string]any{"metadata": map[string]any{"labels": values}})
}

func (f *fixture) patch(object client.Object, change map[string]any) {
	f.Helper()
	patched, ok := object.DeepCopyObject().(client.Object) // because the answer overwrites it
	if !ok {
		f.Fatalf("%T is not a client.Object", object)
	}
	kit.Must(f, f.client.Patch(f.ctx, patched, mergePatch(f.T, change)))
}

// service creates a Service with port 80 and target port 8080. The keys of the annotations have no domain.
func (f *fixture) service(namespace, name string, annotations map[string]string) *corev1.Service {
	f.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{}}}
	for key, value := range annotations {
		service.Annotations[domain+key] = value
	}
	service.Spec.Selector = map[string]string{"app": name}
	service.Spec.Ports = []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}
	kit.Must(f, f.client.Create(f.ctx, service))
	return service
}

// annotate changes an annotation of a Service. The value nil removes it.
func (f *fixture) annotate(service *corev1.Service, key string, value any) {
	f.Helper()
	f.patch(service, map[string]any{"metadata": map[string]any{"annotations": map[string]any{domain + key: value}}})
}

// policies returns all policies of namespaces as "<namespace>/<name>", in order.
func (f *fixture) policies(namespaces ...string) []string {
	f.Helper()
	var names []string
	for _, namespace := range namespaces {
		var list networkingv1.NetworkPolicyList
		kit.Must(f, f.client.List(f.ctx, &list, client.InNamespace(namespace)))
		for _, policy := range list.Items {
			names = append(names, policy.Namespace+"/"+policy.Name)
		}
	}
	slices.Sort(names)
	return names
}

// eventually waits until namespaces have exactly the given policies, as "<namespace>/<name>".
func (f *fixture) eventually(reason string, namespaces []string, want ...string) {
	f.Helper()
	slices.Sort(want)
	kit.Eventually(f, reason, func() string {
		if got := f.policies(namespaces...); !slices.Equal(got, want) {
			return fmt.Sprintf("the policies are %q, want %q", got, want)
		}
		return ""
	})
}

func (f *fixture) policy(namespace, name string) *networkingv1.NetworkPolicy {
	f.Helper()
	policy := &networkingv1.NetworkPolicy{}
	kit.Must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: namespace, Name: name}, policy))
	return policy
}

// eventuallyAgain waits until a policy is restored.
func (f *fixture) eventuallyAgain(reason string, want *networkingv1.NetworkPolicy) {
	f.Helper()
	kit.Eventually(f, reason, func() string {
		policy := &networkingv1.NetworkPolicy{}
		if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(want), policy); err != nil {
			return err.Error()
		}
		if netpol.Digest(policy) != netpol.Digest(want) {
			return fmt.Sprintf("the policy is %+v", policy)
		}
		return ""
	})
}

// warned waits for a Warning Event about a Service whose text contains the given words.
func (f *fixture) warned(service *corev1.Service, reason, words string) {
	f.Helper()
	kit.Eventually(f, "a warning about "+words, func() string {
		var list eventsv1.EventList
		kit.Must(f, f.client.List(f.ctx, &list, client.InNamespace(service.Namespace)))
		var texts []string
		for _, event := range list.Items {
			if event.Regarding.Name == service.Name && event.Type == corev1.EventTypeWarning && event.Reason == reason && event.Action == "Reconcile" && strings.Contains(event.Note, words) {
				return ""
			}
			texts = append(texts, event.Reason+" "+event.Note)
		}
		return fmt.Sprintf("the Events are %q", texts)
	})
}

// quiet waits until the controller has finished its work, which a new Service with its policies shows. It returns the controller's
// requests since the last Forget that are not watches.
func (f *fixture) quiet(namespace, name string) []string {
	f.Helper()
	f.service(namespace, name, nil)
	kit.EventuallyTrue(f, "the policies of another Service", func() bool {
		return slices.Contains(f.policies(namespace), namespace+"/ingress-to-"+name+"-tcp-8080") &&
			slices.Contains(f.policies(namespace), namespace+"/egress-to-"+name+"-tcp-8080")
	})
	var requests []string
	for _, request := range f.requests.Single() {
		// Other tests define and remove the kinds of Istio.
		if !strings.Contains(request.Path, "-to-"+name+"-tcp-8080") && !strings.Contains(request.Path, "networking.istio.io") {
			requests = append(requests, request.String())
		}
	}
	return requests
}

func pairIn(namespace, id string) []string {
	return []string{namespace + "/ingress-to-" + id, namespace + "/egress-to-" + id}
}

// selecting returns a namespace selector for a label.
func selecting(key, value string) string { return fmt.Sprintf(`[{"matchLabels":{%q:%q}}]`, key, value) }

func mergePatch(t *testing.T, change map[string]any) client.Patch {
	t.Helper()
	body, err := json.Marshal(change)
	kit.Must(t, err)
	return client.RawPatch(types.MergePatchType, body)
}
