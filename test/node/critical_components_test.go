package node

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/node/criticalcomponents"
	"github.com/trellis-k8s/trellis/test/kit"
)

const backoff = 10 * time.Second

// steps is a reconciler with running caches that the test calls. No other controller runs at the same time.
type steps struct {
	*fixture
	*criticalcomponents.Reconciler
	target     *target
	components cache.Cache
	clock      *clocktesting.FakeClock
}

func newSteps(t *testing.T, namespaces func(*fixture) []string, wrap ...func(*rest.Config)) *steps {
	t.Helper()
	s := &steps{fixture: newFixture(t), clock: clocktesting.NewFakeClock(time.Now())}
	var err error
	s.target, err = newTarget(shared.Get(t), wrap...)
	kit.Must(t, err)
	s.components, err = s.target.newCache(criticalcomponents.CacheOptions(namespaces(s.fixture)))
	kit.Must(t, err)
	s.Reconciler = criticalcomponents.NewReconciler(criticalcomponents.Reconciler{
		Nodes: s.target.GetCache(), Components: s.components, Client: s.target.GetClient(), Clock: s.clock,
		Options: criticalcomponents.Options{ConcurrentSyncs: 1, Backoff: backoff},
	})
	kit.Must(t, s.IndexCaches(s.ctx))
	kit.Must(t, s.target.Add(s.components))
	s.target.runFor(s.fixture)
	if !s.target.GetCache().WaitForCacheSync(s.ctx) || !s.components.WaitForCacheSync(s.ctx) {
		t.Fatal("the caches are not synced")
	}
	return s
}

func ownNamespace(f *fixture) []string { return []string{f.namespace} }

// look waits until the caches have the test's changes, and reconciles.
func (s *steps) look(name string) reconcile.Result {
	s.Helper()
	s.catchUp(name)
	result, err := s.Reconcile(s.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	kit.Must(s, err)
	return result
}

// lookUntilReleased reconciles again if the node changes during a reconciliation, because controllers of the control plane write nodes
// too.
func (s *steps) lookUntilReleased(name string) {
	s.Helper()
	kit.Eventually(s, "the node is released", func() string {
		if result := s.look(name); s.tainted(name) {
			return fmt.Sprintf("the result is %+v", result)
		}
		return ""
	})
}

func (s *steps) catchUp(name string) {
	s.Helper()
	kit.Eventually(s, "the caches are up to date", func() string {
		live, cached := &corev1.Node{}, &corev1.Node{}
		liveErr := s.client.Get(s.ctx, types.NamespacedName{Name: name}, live)
		err := s.target.GetCache().Get(s.ctx, types.NamespacedName{Name: name}, cached)
		if (liveErr == nil) != (err == nil) || live.ResourceVersion != cached.ResourceVersion {
			return "the Node differs"
		}
		livePods, cachedPods := &corev1.PodList{}, &corev1.PodList{}
		kit.Must(s, s.client.List(s.ctx, livePods, client.InNamespace(s.namespace), client.MatchingLabels(critical)))
		kit.Must(s, s.components.List(s.ctx, cachedPods, client.InNamespace(s.namespace)))
		if !slices.Equal(versions(livePods), versions(cachedPods)) {
			return "the Pods differ"
		}
		return ""
	})
}

func versions(list *corev1.PodList) []string {
	var versions []string
	for _, pod := range list.Items {
		versions = append(versions, pod.Name+" "+pod.ResourceVersion)
	}
	slices.Sort(versions)
	return versions
}

// wantWaiting reconciles and checks that the node waits.
func (s *steps) wantWaiting(name string) {
	s.Helper()
	if result := s.look(name); result.RequeueAfter != backoff || !s.tainted(name) {
		s.Errorf("the result is %+v, tainted: %t", result, s.tainted(name))
	}
}

// TestBackoffAndEvents checks that a waiting node is reconciled again after the backoff, and that Events report only changes.
func TestBackoffAndEvents(t *testing.T) {
	s := newSteps(t, ownNamespace)
	name := s.namespace
	s.node(name, notReady)
	one, two := s.pod("one", critical, on(name)), s.pod("two", critical, on(name))
	first := "2 critical Pod(s) of this node are not Ready yet: " + s.namespace + "/one, " + s.namespace + "/two"
	for range 5 {
		s.wantWaiting(name)
		s.clock.Step(backoff)
	}
	s.eventuallyTold(name, warning(criticalcomponents.ReasonUnready, first))
	s.says(one, corev1.ConditionTrue)
	s.wantWaiting(name)
	second := "1 critical Pod(s) of this node are not Ready yet: " + s.namespace + "/two"
	s.eventuallyTold(name, warning(criticalcomponents.ReasonUnready, second))
	// A change too soon after the previous Event is reported later, if it is still true.
	s.says(one, corev1.ConditionFalse)
	s.wantWaiting(name)
	s.says(one, corev1.ConditionTrue)
	s.clock.Step(backoff)
	s.wantWaiting(name)
	s.says(two, corev1.ConditionTrue)
	s.lookUntilReleased(name)
	s.eventuallyTold(name, normal)
	if events := s.events(name); len(events) != 3 {
		t.Errorf("the Events are %+v", events)
	}
	if result := s.look(name); result != (reconcile.Result{}) {
		t.Errorf("without the taint, the result is %+v", result)
	}
	var requests []string
	for _, sent := range s.target.requests.Single() {
		if sent.Method != http.MethodGet {
			requests = append(requests, sent.String())
		}
	}
	slices.Sort(requests)
	if want := []string{
		"PATCH /api/v1/nodes/" + name, "POST /apis/events.k8s.io/v1/namespaces/default/events",
		"POST /apis/events.k8s.io/v1/namespaces/default/events", "POST /apis/events.k8s.io/v1/namespaces/default/events",
	}; !slices.Equal(requests, want) {
		t.Errorf("the requests are %q", requests)
	}
}

// TestNamespaces checks that components of other namespaces count only if all namespaces do, which is the default.
func TestNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces func(*fixture) []string
		waits      bool
	}{
		"all":         {func(*fixture) []string { return nil }, true},
		"own":         {ownNamespace, true},
		"kube-system": {func(*fixture) []string { return []string{metav1.NamespaceSystem} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSteps(t, test.namespaces)
			s.pod("one", critical, on(s.namespace))
			s.node(s.namespace, notReady)
			waits := func() bool {
				kit.Eventually(t, "the cache has the Node", func() string {
					return kit.TextOf(s.target.GetCache().Get(s.ctx, types.NamespacedName{Name: s.namespace}, &corev1.Node{}))
				})
				_, err := s.Reconcile(s.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: s.namespace}})
				kit.Must(t, err)
				return s.tainted(s.namespace)
			}
			if test.waits {
				s.catchUp(s.namespace)
				if !waits() {
					t.Error("the node is released")
				}
				return
			}
			kit.EventuallyTrue(t, "the node is released", func() bool { return !waits() })
		})
	}
}

// TestTaintAddedMeanwhile checks that concurrent writes of other clients are not lost when the taint is removed.
func TestTaintAddedMeanwhile(t *testing.T) {
	var meanwhile func()
	s := newSteps(t, ownNamespace, func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/nodes/") && meanwhile != nil {
					meanwhile()
					meanwhile = nil
				}
				return next.RoundTrip(request)
			})
		})
	})
	name := s.namespace
	s.node(name, notReady)
	added := corev1.Taint{Key: "example.org/added", Effect: corev1.TaintEffectNoExecute, TimeAdded: ptr.To(metav1.Unix(1_700_000_000, 0))}
	s.catchUp(name)
	meanwhile = func() {
		one := s.readNode(name)
		s.change(one, func() { one.Spec.Taints = append(one.Spec.Taints, added) })
	}
	result, err := s.Reconcile(s.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	kit.Must(t, err)
	if meanwhile != nil || result.RequeueAfter <= 0 || result.RequeueAfter >= backoff || !s.tainted(name) {
		t.Errorf("after a conflict, the result is %+v, tainted: %t", result, s.tainted(name))
	}
	s.lookUntilReleased(name)
	taints := s.readNode(name).Spec.Taints
	if s.tainted(name) || !slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
		return taint.Key == added.Key && taint.TimeAdded.Equal(added.TimeAdded)
	}) {
		t.Errorf("the taints are %+v", taints)
	}
	if events := s.events(name); slices.ContainsFunc(events, func(one event) bool { return one.kind == corev1.EventTypeWarning }) {
		t.Errorf("the Events are %+v", events)
	}
}

// TestNodeThatIsGone checks that no requests are sent and no Events recorded for a node that was deleted, or whose deletion is not
// observed yet.
func TestNodeThatIsGone(t *testing.T) {
	s := newSteps(t, ownNamespace)
	one := s.node(s.namespace, notReady)
	s.catchUp(one.Name)
	s.delete(one)
	for range 2 {
		result, err := s.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: one.Name}})
		if err != nil || result != (reconcile.Result{}) {
			t.Errorf("the result is %+v, %v", result, err)
		}
		s.catchUp(one.Name)
	}
	if events := s.events(one.Name); len(events) != 0 {
		t.Errorf("the Events are %+v", events)
	}
}

// TestRefusedPatch checks that the error names the node and the taint, and that the taint is kept.
func TestRefusedPatch(t *testing.T) {
	s := newSteps(t, ownNamespace, func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Method == http.MethodPatch {
					request = request.Clone(request.Context())
					request.Header.Set("Impersonate-User", "nobody")
				}
				return next.RoundTrip(request)
			})
		})
	})
	s.node(s.namespace, notReady)
	s.catchUp(s.namespace)
	_, err := s.Reconcile(s.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: s.namespace}})
	if text := kit.TextOf(err); !strings.HasPrefix(text, "remove the taint "+criticalcomponents.Taint+" of Node "+s.namespace+": ") || !strings.Contains(text, "forbidden") {
		t.Errorf("the error is %q", text)
	}
	if !s.tainted(s.namespace) {
		t.Error("the taint was removed")
	}
}

// TestAPIServerWithoutCSINodes checks that nodes are released nevertheless, except for nodes whose Pods need drivers.
func TestAPIServerWithoutCSINodes(t *testing.T) {
	f := newFixture(t)
	startController(t, shared.Get(t), func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
				if strings.HasPrefix(request.URL.Path, "/apis/storage.k8s.io") {
					request = request.Clone(request.Context())
					request.URL.Path = "/apis/storage.example.org"
				}
				return next.RoundTrip(request)
			})
		})
	}).runFor(f)
	f.node(f.named("plain"), notReady)
	f.eventuallyReleased(f.named("plain"))
	pod := f.pod("csi", critical, on(f.named("storage")), func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{criticalcomponents.AnnotationPrefixCSIDriver + "disk": "disk.csi.example.org"}
	})
	f.says(pod, corev1.ConditionTrue)
	f.node(f.named("storage"), notReady)
	f.eventuallyTold(f.named("storage"), warning(criticalcomponents.ReasonDrivers,
		"1 CSI driver(s) that critical Pods of this node need are not registered in its CSINode yet: disk.csi.example.org"))
}
