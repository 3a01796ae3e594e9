package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/node"
	"github.com/trellis-k8s/trellis/pkg/node/criticalcomponents"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// testLabel distinguishes the Nodes of a test from those of other tests.
const testLabel = "example.org/test"

// fixture is a test with its own namespace.
type fixture struct {
	*testing.T
	ctx       context.Context
	client    client.Client
	namespace string
	// components is the cache of the running critical components controller. It is nil if none runs, or if it runs in another process.
	components cache.Cache
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, shared.Get(t))
}

func newFixtureOn(t *testing.T, cp *controlplane.ControlPlane) *fixture {
	t.Helper()
	config := cp.Config()
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	kit.Must(t, err)
	return &fixture{T: t, ctx: t.Context(), client: c, namespace: kit.NewNamespace(t, c, "node", nil)}
}

// target is a connection to a control plane like the resource-manager's connection to its target cluster: a manager with the reduced
// cache of Nodes. It counts the requests.
type target struct {
	manager.Manager
	config   *rest.Config
	requests *kit.Requests
	// components is the cache of critical components, if the controller for them runs.
	components cache.Cache
}

func newTarget(cp *controlplane.ControlPlane, wrap ...func(*rest.Config)) (*target, error) {
	t := &target{config: cp.Config(), requests: &kit.Requests{}}
	t.config.QPS = -1
	t.config.Wrap(t.requests.Wrap)
	for _, change := range wrap {
		change(t.config)
	}
	var err error
	options := kit.ManagerOptions(scheme.Scheme)
	options.Logger = logr.Discard()
	options.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: node.Reduce}}
	t.Manager, err = manager.New(t.config, options)
	return t, err
}

// newCache returns another cache, created like those of the resource-manager.
func (t *target) newCache(options cache.Options) (cache.Cache, error) {
	options.HTTPClient, options.Mapper, options.Scheme = t.GetHTTPClient(), t.GetRESTMapper(), t.GetScheme()
	return cache.New(t.config, options)
}

// run starts the manager. It runs until the returned function is called.
func (t *target) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = t.Start(ctx) // a failure shows as a timeout in the test
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

// runFor starts the manager until the test ends.
func (t *target) runFor(f *fixture) {
	stop := t.run()
	f.Cleanup(stop)
}

// node creates a Node that is Ready and has the label of the test. The Node is deleted when the test ends.
func (f *fixture) node(name string, taints ...corev1.Taint) *corev1.Node {
	f.Helper()
	one := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{testLabel: f.namespace, corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{Taints: taints},
	}
	f.createNode(one)
	return one
}

func (f *fixture) createNode(one *corev1.Node) {
	f.Helper()
	kit.Must(f, f.client.Create(f.ctx, one))
	f.Cleanup(func() { f.delete(one) })
	before := one.DeepCopy()
	one.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: metav1.Now()}}
	one.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: *ptr.To(quantity(110))}
	one.Status.Capacity = one.Status.Allocatable
	kit.Must(f, f.client.Status().Patch(f.ctx, one, client.MergeFrom(before)))
}

// delete deletes an object without a grace period, if it exists.
func (f *fixture) delete(obj client.Object) {
	f.Helper()
	err := f.client.Delete(context.Background(), obj, client.GracePeriodSeconds(0))
	if !apierrors.IsNotFound(err) {
		kit.Must(f, err)
	}
}

func (f *fixture) readNode(name string) *corev1.Node {
	f.Helper()
	one := &corev1.Node{}
	kit.Must(f, f.client.Get(f.ctx, types.NamespacedName{Name: name}, one))
	return one
}

// change changes the current version of an object, which other clients may change too.
func (f *fixture) change(obj client.Object, change func()) {
	f.Helper()
	kit.Eventually(f, "the object is changed", func() string {
		kit.Must(f, f.client.Get(f.ctx, client.ObjectKeyFromObject(obj), obj))
		before, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			f.Fatalf("%T is not a client.Object", obj)
		}
		change()
		err := f.client.Patch(f.ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return err.Error()
		}
		kit.Must(f, err)
		return ""
	})
}

// eventuallyShown waits until the controller's cache has the current version of a critical component. The watch of Nodes might be
// ahead, in which case the Node would be released.
func (f *fixture) eventuallyShown(obj client.Object) {
	f.Helper()
	if f.components == nil || obj.GetLabels()[criticalcomponents.Label] != criticalcomponents.LabelValue {
		return
	}
	shown, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		f.Fatalf("%T is not a client.Object", obj)
	}
	kit.Eventually(f, "the controller has observed "+obj.GetName(), func() string {
		if err := f.components.Get(f.ctx, client.ObjectKeyFromObject(obj), shown); err != nil {
			return err.Error()
		}
		order, err := resourceversion.CompareResourceVersion(shown.GetResourceVersion(), obj.GetResourceVersion())
		if err == nil && order < 0 {
			return "it has an earlier version"
		}
		return kit.TextOf(err)
	})
}

// event contains the compared fields of an Event.
type event struct{ kind, reason, reporter, note string }

// events returns the Events of a Node in chronological order.
func (f *fixture) events(name string) []event {
	f.Helper()
	list := &corev1.EventList{}
	kit.Must(f, f.client.List(f.ctx, list, client.MatchingFields{"involvedObject.kind": "Node", "involvedObject.name": name}))
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var events []event
	for _, one := range list.Items {
		if strings.HasPrefix(one.ReportingController, "node-critical") {
			events = append(events, event{one.Type, one.Reason, one.ReportingController, one.Message})
		}
	}
	return events
}

// eventuallyTold waits for an Event for a Node.
func (f *fixture) eventuallyTold(name string, want event) {
	f.Helper()
	kit.Eventually(f, fmt.Sprintf("Event %s exists for Node %s", want.reason, name), func() string {
		events := f.events(name)
		if slices.Contains(events, want) {
			return ""
		}
		return fmt.Sprintf("%+v", events)
	})
}

func (f *fixture) reasons(name string) []string {
	f.Helper()
	var reasons []string
	for _, one := range f.events(name) {
		reasons = append(reasons, one.reason)
	}
	return reasons
}

// eventuallyGiven waits for an Event for a Node with a reason.
func (f *fixture) eventuallyGiven(name, reason string) {
	f.Helper()
	kit.EventuallyTrue(f, "Event "+reason+" exists for Node "+name, func() bool { return slices.Contains(f.reasons(name), reason) })
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// testClock returns the time that the test has set.
type testClock struct{ now time.Time }

func (c *testClock) Now() time.Time                       { return c.now }
func (c *testClock) Since(moment time.Time) time.Duration { return c.now.Sub(moment) }
