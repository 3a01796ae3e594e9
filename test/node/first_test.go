package node

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/node/agentdelay"
	"github.com/trellis-k8s/trellis/pkg/node/firstnode"
	"github.com/trellis-k8s/trellis/test/kit"
)

// firstNodes is a pool of two nodes, with the controller that chooses the first one.
type firstNodes struct {
	*fixture
	target *target
	secret *corev1.Secret
	clock  *clocktesting.FakePassiveClock
}

func (f *firstNodes) start() (stop func()) {
	f.Helper()
	var err error
	f.target, err = newTarget(shared.Get(f))
	kit.Must(f, err)
	secrets, err := f.target.newCache(agentdelay.CacheOptions())
	kit.Must(f, err)
	kit.Must(f, f.target.Add(secrets))
	reconciler := &firstnode.Reconciler{Nodes: f.target.GetCache(), Secrets: secrets, Client: f.target.GetClient(), Clock: f.clock}
	kit.Must(f, reconciler.AddToManager(f.target))
	stop = f.target.run()
	f.Cleanup(stop)
	return stop
}

// offer changes the configuration, as a ManagedResource does.
func (f *firstNodes) offer(checksum string) {
	f.Helper()
	f.change(f.secret, func() { f.secret.Annotations[constants.AnnotationChecksumDataScript] = checksum })
}

// apply says that a node has applied the configuration.
func (f *firstNodes) apply(node *corev1.Node, checksum string) {
	f.Helper()
	f.change(node, func() {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, constants.AnnotationChecksumCloudConfigData, checksum)
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, constants.AnnotationNodeAgentAppliedAt, f.clock.Now().UTC().Format(time.RFC3339))
	})
}

// eventually waits until the Secret says which node goes first, and which configuration all may apply.
func (f *firstNodes) eventually(first, tried string) {
	f.Helper()
	kit.Eventually(f, "first is "+first+", tried is "+tried, func() string {
		if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(f.secret), f.secret); err != nil {
			return err.Error()
		}
		got := f.secret.Annotations[constants.AnnotationNodeAgentFirstNode] + ", " + f.secret.Annotations[constants.AnnotationNodeAgentTriedChecksum]
		if got != first+", "+tried {
			return "got " + got
		}
		return ""
	})
}

// TestFirstNode follows a pool through changes of its configuration: one node applies it, and the others follow when it has run with it.
func TestFirstNode(t *testing.T) {
	f := &firstNodes{fixture: newFixture(t), clock: clocktesting.NewFakePassiveClock(time.Now())}
	f.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: f.namespace, Labels: map[string]string{agentdelay.LabelRole: agentdelay.RoleOperatingSystemConfig},
		Annotations: map[string]string{constants.AnnotationChecksumDataScript: "1"},
	}}
	kit.Must(t, f.client.Create(f.ctx, f.secret))
	t.Cleanup(func() { f.delete(f.secret) })
	var nodes []*corev1.Node
	for _, name := range []string{"a", "b"} {
		one := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.named(name), Labels: map[string]string{
			constants.LabelWorkerPoolNodeAgentSecretName: f.secret.Name,
		}}}
		f.createNode(one)
		f.apply(one, "1")
		nodes = append(nodes, one)
	}
	stop := f.start()
	f.eventually("", "1")
	f.offer("2")
	f.eventually(nodes[0].Name+"/2", "1")
	f.apply(nodes[0], "2")
	stop()

	// A new leader continues, and sends nothing else.
	f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
	f.start()
	f.eventually(nodes[0].Name+"/2", "2")
	f.apply(nodes[1], "2")
	f.offer("3")
	f.eventually(nodes[0].Name+"/3", "2")
	f.delete(nodes[0])
	f.eventually(nodes[1].Name+"/3", "2")
	patches := 0
	for _, sent := range f.target.requests.Single() {
		if sent.Method == http.MethodPatch && strings.HasSuffix(sent.Path, "/secrets/"+f.secret.Name) {
			patches++
		} else if sent.Method != http.MethodGet {
			t.Errorf("the controller sent %s", sent)
		}
	}
	if patches != 3 {
		t.Errorf("%d patches were sent, want 3", patches)
	}
}
