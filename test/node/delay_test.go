package node

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	nodepkg "github.com/trellis-k8s/trellis/pkg/node"
	"github.com/trellis-k8s/trellis/pkg/node/agentdelay"
	"github.com/trellis-k8s/trellis/test/kit"
)

var manyNodes = flag.Int("node.delays", 100, "nodes of TestManyDelays")

// delays is a delay controller that runs until the test ends or stop is called.
type delays struct {
	*fixture
	target   *target
	registry *prometheus.Registry
	stop     func()
}

func (f *fixture) startDelays(keepDelays bool, wrap ...func(*rest.Config)) *delays {
	f.Helper()
	d := &delays{fixture: f, registry: prometheus.NewRegistry()}
	var err error
	d.target, err = newTarget(shared.Get(f), wrap...)
	kit.Must(f, err)
	secrets, err := d.target.newCache(agentdelay.CacheOptions())
	kit.Must(f, err)
	reconciler := &agentdelay.Reconciler{
		Nodes: d.target.GetCache(), Secrets: secrets, Client: d.target.GetClient(), Metrics: agentdelay.NewMetrics(d.registry),
		Clock: clock.RealClock{}, Options: agentdelay.Options{MaxDelay: 5 * time.Minute, KeepDelays: keepDelays},
	}
	kit.Must(f, reconciler.AddToManager(d.target))
	d.stop = d.target.run()
	f.Cleanup(d.stop)
	return d
}

// metric returns the value of a metric, of the series with the label if one is given.
func (d *delays) metric(name, label string) float64 {
	d.Helper()
	families, err := d.registry.Gather()
	kit.Must(d, err)
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if family.GetName() == "resource_manager_"+name && (label == "" || one.GetLabel()[0].GetValue() == label) {
				return one.GetGauge().GetValue() + one.GetCounter().GetValue()
			}
		}
	}
	d.Errorf("no metric %s found", name)
	return 0
}

// eventuallyDelays waits for the delays of all nodes, as "<name> <delay>, …". Names are without the prefix of the test's nodes.
func (f *fixture) eventuallyDelays(want string) {
	f.Helper()
	kit.Eventually(f, "the delays are "+want, func() string {
		nodes := &corev1.NodeList{}
		kit.Must(f, f.client.List(f.ctx, nodes))
		var all []string
		for _, one := range nodes.Items {
			all = append(all, strings.TrimSpace(strings.TrimPrefix(one.Name, f.namespace+"-")+" "+one.Annotations[nodepkg.AnnotationReconciliationDelay]))
		}
		if got := strings.Join(all, ", "); got != want {
			return "the delays are " + got
		}
		return ""
	})
}

func (f *fixture) named(name string) string { return f.namespace + "-" + name }

// TestDelaysFollowTheNodes checks that the delays are spread again when nodes join and leave, and that a change of a delay by another
// client is reverted. Other changes and restarts have no effect.
func TestDelaysFollowTheNodes(t *testing.T) {
	f := newFixture(t)
	c := f.node(f.named("c"))
	f.node(f.named("a"))
	b := f.node(f.named("b"))
	d := f.startDelays(false)
	f.eventuallyDelays("a 0s, b 1m40s, c 3m20s")
	f.node(f.named("d"))
	f.eventuallyDelays("a 0s, b 1m15s, c 2m30s, d 3m45s")
	f.delete(b)
	f.eventuallyDelays("a 0s, c 1m40s, d 3m20s")
	kit.EventuallyTrue(t, "the metrics count the delays", func() bool {
		return d.metric("node_agent_delays", "") == 3 && d.metric("node_agent_delay_changes_total", "changed") == 3+4-1+2
	})
	f.change(c, func() { c.Annotations[nodepkg.AnnotationReconciliationDelay] = "1h" })
	f.eventuallyDelays("a 0s, c 1m40s, d 3m20s")
	d.stop()

	// A new leader without pending changes sends no writes.
	again := f.startDelays(false)
	kit.EventuallyTrue(t, "the new leader has reconciled", func() bool { return again.metric("node_agent_delays", "") == 3 })
	for _, sent := range again.target.requests.Single() {
		if sent.Method != http.MethodGet {
			t.Errorf("the controller sent %s", sent)
		}
	}
}

// TestSerialNodesHaveNoDelay checks that nodes whose node agents are serialized are left out while they are.
func TestSerialNodesHaveNoDelay(t *testing.T) {
	f := newFixture(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: f.namespace, Labels: map[string]string{agentdelay.LabelRole: agentdelay.RoleOperatingSystemConfig},
		Annotations: map[string]string{agentdelay.AnnotationSerial: "true"},
	}, Data: map[string][]byte{"key": []byte("value")}}
	kit.Must(t, f.client.Create(f.ctx, secret))
	t.Cleanup(func() { f.delete(secret) })
	for _, name := range []string{"a", "b", "c"} {
		one := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.named(name)}}
		if name == "b" {
			one.Labels = map[string]string{agentdelay.LabelSecretName: secret.Name}
		}
		f.createNode(one)
	}
	d := f.startDelays(false)
	f.eventuallyDelays("a 0s, b, c 2m30s")
	f.change(secret, func() { secret.Annotations[agentdelay.AnnotationSerial] = "TRUE" }) // not literally true
	f.eventuallyDelays("a 0s, b 1m40s, c 3m20s")
	f.change(secret, func() { secret.Annotations[agentdelay.AnnotationSerial] = "true" })
	f.eventuallyDelays("a 0s, b 1m40s, c 2m30s")
	f.delete(secret)
	f.eventuallyDelays("a 0s, b 1m40s, c 3m20s")
	for _, sent := range d.target.requests.All() {
		if strings.Contains(sent.Path, "/secrets") && !strings.HasSuffix(sent.Path, "/namespaces/kube-system/secrets") {
			t.Errorf("the controller sent %s", sent)
		}
	}
}

// flight counts the concurrent patches.
type flight struct {
	mu        sync.Mutex
	now, most int
}

func (c *flight) wrap(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch {
				c.add(1)
				defer c.add(-1)
			}
			return next.RoundTrip(request)
		})
	})
}

func (c *flight) add(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += change
	c.most = max(c.most, c.now)
}

// TestManyDelays measures the cost of one more node among many, with and without keepDelays, and checks that the number of concurrent
// patches is limited.
func TestManyDelays(t *testing.T) {
	for name, test := range map[string]struct {
		keepDelays bool
		wantJoin   int
	}{
		// The first node keeps its delay.
		"by the letter": {false, *manyNodes},
		"kept":          {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var group errgroup.Group
			group.SetLimit(16)
			for i := range *manyNodes {
				one := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.named(fmt.Sprintf("%05d", i))}}
				group.Go(func() error { return f.client.Create(f.ctx, one) })
			}
			t.Cleanup(func() { kit.Must(t, f.client.DeleteAllOf(context.Background(), &corev1.Node{})) })
			kit.Must(t, group.Wait())
			patches := &flight{}
			d := f.startDelays(test.keepDelays, patches.wrap)
			changed := func() float64 { return d.metric("node_agent_delay_changes_total", "changed") }
			kit.EventuallyTrue(t, "all nodes have a delay", func() bool { return changed() == float64(*manyNodes) })
			last := f.readNode(f.named(fmt.Sprintf("%05d", *manyNodes-1)))
			if got, want := last.Annotations[nodepkg.AnnotationReconciliationDelay], (5 * time.Minute * time.Duration(*manyNodes-1) / time.Duration(*manyNodes)).String(); got != want {
				t.Errorf("the last node has the delay %s, want %s", got, want)
			}
			d.target.requests.Forget()
			started := time.Now()
			joined := f.named("joined")
			kit.Must(t, f.client.Create(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: joined}}))
			kit.EventuallyTrue(t, "all nodes have been reconciled with the new one", func() bool { return d.metric("node_agent_delays", "") == float64(*manyNodes+1) })
			kit.EventuallyTrue(t, "the new node has a delay too", func() bool {
				return int(changed()) == *manyNodes+test.wantJoin && f.readNode(joined).Annotations[nodepkg.AnnotationReconciliationDelay] != ""
			})
			t.Logf("one node joined %d: %d requests, %d annotations changed, at most %d at a time, %s",
				*manyNodes, len(d.target.requests.Single()), int(changed())-*manyNodes, patches.most, time.Since(started).Round(time.Millisecond))
			if patches.most > 10 || patches.most < 2 {
				t.Errorf("%d patches were sent at a time", patches.most)
			}
		})
	}
}
