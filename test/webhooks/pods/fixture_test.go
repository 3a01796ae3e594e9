// Package pods tests webhooks for Pods, VerticalPodAutoscalers and EndpointSlices on a real API server. Where it matters, the
// controllers and the scheduler of Kubernetes run too, with simulated nodes.
package pods

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// fixture is a namespace for which webhooks can be registered.
type fixture struct {
	*testing.T
	client client.Client
	// key is a label that only the test's namespaces have.
	key       string
	namespace string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c, err := client.New(shared.Get(t).Config(), client.Options{Scheme: clientgoscheme.Scheme})
	kit.Must(t, err)
	f := &fixture{T: t, client: c}
	f.key = "test.example.org/" + kit.NewNamespace(t, c, "key", nil)
	f.namespace = f.newNamespace("gardener.cloud/role", "test")
	return f
}

// in returns the fixture for a subtest, in its own namespace.
func (f *fixture) in(t *testing.T) *fixture {
	t.Helper()
	inner := *f
	inner.T = t
	inner.namespace = inner.newNamespace("gardener.cloud/role", "test")
	return &inner
}

// newNamespace creates a namespace with labels (keys and values) in which Pods can be created.
func (f *fixture) newNamespace(labels ...string) string {
	f.Helper()
	all := map[string]string{f.key: ""}
	for i := 0; i < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	name := kit.NewNamespace(f, f.client, "pods", all)
	kit.Eventually(f, "the namespace has its default ServiceAccount", func() string {
		return kit.TextOf(f.client.Get(f.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{}))
	})
	return name
}

// reader returns a cache of the objects that the webhooks read, reduced to the fields that they declare.
func (f *fixture) reader() cache.Cache {
	f.Helper()
	c, err := cache.New(shared.Get(f).Config(), cache.Options{Scheme: clientgoscheme.Scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}: {Transform: reduce(func(account *corev1.ServiceAccount) *corev1.ServiceAccount {
			return &corev1.ServiceAccount{ObjectMeta: identity(account), AutomountServiceAccountToken: account.AutomountServiceAccountToken}
		})},
		&corev1.Node{}: {Transform: reduce(func(node *corev1.Node) *corev1.Node {
			meta := identity(node)
			meta.Labels = node.Labels
			return &corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{Taints: node.Spec.Taints}}
		})},
	}})
	kit.Must(f, err)
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(f.Context()) }) // ends with the test; otherwise the test's reads fail
	f.Cleanup(running.Wait)
	for _, object := range []client.Object{&corev1.ServiceAccount{}, &corev1.Node{}} {
		_, err := c.GetInformer(f.Context(), object, cache.BlockUntilSynced(false))
		kit.Must(f, err)
	}
	if !c.WaitForCacheSync(f.Context()) { // like the program, so that the first request does not wait
		f.Fatal("the cache is not filled")
	}
	return c
}

func reduce[T any](to func(T) T) func(any) (any, error) {
	return func(object any) (any, error) {
		if typed, is := object.(T); is {
			return to(typed), nil
		}
		return object, nil
	}
}

func identity(object client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

// hook is the registration of a webhook.
type hook struct {
	admissionregistrationv1.MutatingWebhook
	path    string
	handler admission.Handler
}

// register serves webhooks and registers them with the API server for the test's namespaces.
func (f *fixture) register(hooks ...hook) {
	f.Helper()
	hooks = append(hooks, canary())
	handlers := map[string]http.Handler{}
	for _, hook := range hooks {
		handler, err := admission.StandaloneWebhook(&admission.Webhook{Handler: hook.handler}, admission.StandaloneOptions{})
		kit.Must(f, err)
		handlers[hook.path] = handler
	}
	served := kit.ServeWebhooks(f, handlers)
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	for _, hook := range hooks {
		webhook := hook.MutatingWebhook
		webhook.ClientConfig = served.ClientConfig(hook.path)
		webhook.AdmissionReviewVersions = []string{"v1beta1", "v1"}
		webhook.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNone)
		if webhook.NamespaceSelector == nil {
			webhook.NamespaceSelector = &metav1.LabelSelector{}
		}
		metav1.AddLabelToSelector(webhook.NamespaceSelector, f.key, "")
		configuration.Webhooks = append(configuration.Webhooks, webhook)
	}
	kit.Must(f, f.client.Create(f.Context(), configuration))
	f.Cleanup(func() {
		kit.Must(f, f.client.Delete(context.Background(), configuration))
	})
	kit.EventuallyTrue(f, "the API server calls the webhooks", func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}}
		kit.Must(f, f.client.Create(f.Context(), probe, client.DryRunAll))
		return probe.Annotations["called"] == "true"
	})
}

// canary is a webhook that is called once all others of its configuration are.
func canary() hook {
	return hook{path: "/canary", handler: admit.Mutating(func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		func(_ context.Context, _ *admission.Request, configMap *corev1.ConfigMap) error {
			metav1.SetMetaDataAnnotation(&configMap.ObjectMeta, "called", "true")
			return nil
		}),
		MutatingWebhook: admissionregistrationv1.MutatingWebhook{Name: "canary.example.org", Rules: rule("", "v1", "configmaps", create)},
	}
}

// pod parses a Pod from YAML, in the namespace of the test.
func (f *fixture) pod(text string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{}
	kit.Must(f, yaml.UnmarshalStrict([]byte(text), pod))
	pod.Namespace, pod.Name = f.namespace, "pod"
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Image = "image"
		}
	}
	return pod
}

// try returns a Pod as the API server would store it, or the API server's error.
func (f *fixture) try(text string) (*corev1.Pod, error) {
	f.Helper()
	pod := f.pod(text)
	return pod, f.client.Create(f.Context(), pod, client.DryRunAll)
}

// would is try for a Pod that must be valid.
func (f *fixture) would(text string) *corev1.Pod {
	f.Helper()
	pod, err := f.try(text)
	if err != nil {
		f.Fatalf("%v\n%s", err, text)
	}
	return pod
}

// wantRefusal checks that a Pod is refused with a message.
func (f *fixture) wantRefusal(text, message string) {
	f.Helper()
	if _, err := f.try(text); err == nil || !strings.HasSuffix(err.Error(), "denied the request: "+message) {
		f.Errorf("the answer is %v", err)
	}
}
