// Package registration tests the resource-manager's webhook server as API servers call it, with the webhook for highly available
// workloads, on a real control plane that schedules Pods.
package registration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

const (
	nodes = 6
	zones = 3
	// enabled is the configuration of the webhooks under test.
	enabled = "webhooks: {highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: 60}, podTopologySpreadConstraints: {enabled: true}}\n"
	// labelTest is on the namespaces of the test.
	labelTest = "example.org/test"
)

var (
	shared  = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: nodes}}
	prepare sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// fixture is a resource-manager that serves webhooks for its own namespaces.
type fixture struct {
	*testing.T
	client  client.Client
	process *kit.Process
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	cp := shared.Get(t)
	c, err := client.New(cp.Config(), client.Options{})
	kit.Must(t, err)
	f := &fixture{T: t, client: c}
	prepare.Do(f.prepare)
	f.process = kit.StartManager(t, cp.Kubeconfig(), nil, enabled)
	f.register()
	return f
}

// prepare defines ManagedResources and assigns the nodes to zones.
func (f *fixture) prepare() {
	f.Helper()
	kit.DefineManagedResources(f, shared.Get(f).Config())
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"zone-%d"}}}`, corev1.LabelTopologyZone, i%zones)
		kit.Must(f, f.client.Patch(f.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
}

// register registers the webhooks with the API server, for namespaces of the test.
func (f *fixture) register() {
	f.Helper()
	f.registerAt(fmt.Sprintf("https://127.0.0.1:%d", f.process.WebhookPort), f.process.Authority.Bundle())
}

// registerAt is register for a URL, with an optional bundle of certificates to trust.
func (f *fixture) registerAt(url string, bundle []byte) {
	f.Helper()
	config := &configv1alpha1.WebhooksConfiguration{}
	config.HighAvailabilityConfig.Enabled, config.PodTopologySpreadConstraints.Enabled = true, true
	configuration := webhooks.MutatingConfiguration(webhooks.Enabled(webhooks.Table(), config), webhooks.Placement{}, webhookserver.AtURL(url, bundle))
	configuration.Name = strings.ToLower(f.Name())
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].NamespaceSelector.MatchLabels = map[string]string{labelTest: f.Name()}
	}
	kit.Must(f, f.client.Create(f.Context(), configuration))
	f.Cleanup(func() { kit.Must(f, f.client.Delete(context.WithoutCancel(f.Context()), configuration)) })
	// API servers observe new configurations a moment later.
	namespace := f.namespace(nil)
	kit.EventuallyTrue(f, "the API server calls the webhook", func() bool {
		probe := deployment(namespace, "probe", 2)
		return f.client.Create(f.Context(), probe, client.DryRunAll) == nil && len(probe.Spec.Template.Spec.TopologySpreadConstraints) > 0
	})
}

// namespace creates a namespace that the webhook is called for.
func (f *fixture) namespace(annotations map[string]string) string {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "webhooks-", Annotations: annotations,
		Labels: map[string]string{labelTest: f.Name(), "gardener.cloud/role": "test", highavailability.LabelConsider: "true"},
	}}
	kit.Must(f, f.client.Create(f.Context(), namespace))
	kit.Eventually(f, "the namespace has its default service account", func() string {
		return kit.TextOf(f.client.Get(f.Context(), client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{}))
	})
	return namespace.Name
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
