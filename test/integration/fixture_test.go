// Package integration tests the resource-manager's controllers against a real API server.
package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var (
	shared      = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1}}
	installOnce sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(kit.RunAudited(&shared, m))
}

const syncPeriod = time.Hour

// fixture is a namespace in the source cluster and a reconciler that only the test calls. The value of its managed-by
// label is the namespace. So no fixture sees the objects of another one.
type fixture struct {
	*testing.T
	ctx        context.Context
	client     client.Client
	namespace  string
	reconciler *managedresource.Reconciler
	clock      *clocktesting.FakeClock
	recorder   *events.FakeRecorder
	requests   *requestLog
	// strict makes the engine reject objects with fields that the API server does not know.
	strict bool
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := shared.Get(t).Config()
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, resourcesv1alpha1.AddToScheme(scheme))
	installOnce.Do(func() {
		kit.DefineManagedResources(t, config)
	})
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, c.Create(t.Context(), namespace))
	f := &fixture{
		T: t, ctx: t.Context(), client: c, namespace: namespace.Name,
		// The clock is ahead, so that no timestamp of the API server is recent.
		clock:    clocktesting.NewFakeClock(time.Now().Add(time.Hour).Truncate(time.Second)),
		recorder: events.NewFakeRecorder(1000),
		requests: &requestLog{},
	}
	f.reconciler = f.newReconciler(config, c, managedresource.Options{})
	return f
}

// newReconciler returns a reconciler in the state of a resource-manager that has just started.
func (f *fixture) newReconciler(config *rest.Config, source client.Client, options managedresource.Options) *managedresource.Reconciler {
	f.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(f.requests.wrap)
	httpClient, err := rest.HTTPClientFor(config)
	must(f, err)
	objects, err := target.NewObjects(config, httpClient)
	must(f, err)
	if options.Class == "" {
		options.Class = resourcesv1alpha1.DefaultClass
	}
	options.ManagedBy, options.SyncPeriod, options.ConcurrentSyncs = f.namespace, syncPeriod, 5
	if options.Limits == (manifest.Limits{}) {
		options.Limits = manifest.DefaultLimits()
	}
	view := live.NewView(live.Options{
		Objects: objects, Policy: fieldowner.DefaultPolicy(), ManagedBy: options.ManagedBy, Clock: clock.RealClock{},
	})
	go func() { _ = view.Start(f.Context()) }() // ends with the test
	return managedresource.NewReconciler(managedresource.Reconciler{
		Source: indexed{source}, Direct: f.client, Autoscalers: f.client, Objects: objects, Live: view,
		Engine: apply.NewEngine(objects, apply.Settings{Policy: fieldowner.DefaultPolicy(), Strict: f.strict}, clock.RealClock{}), Recorder: f.recorder, Clock: f.clock, Options: options,
	})
}

// indexed emulates the field indices that only a cache provides.
type indexed struct{ client.Client }

func (c indexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	managedResources, is := list.(*resourcesv1alpha1.ManagedResourceList)
	if !is || asked.FieldSelector == nil {
		return c.Client.List(ctx, list, options...)
	}
	requirement := asked.FieldSelector.Requirements()[0]
	asked.FieldSelector = nil
	err := c.Client.List(ctx, list, &asked)
	managedResources.Items = slices.DeleteFunc(managedResources.Items, func(mr resourcesv1alpha1.ManagedResource) bool {
		names := mr.Dependencies()
		if requirement.Field == "spec.deleteAfter" {
			names, _ = mr.DeletedAfter()
		}
		return !slices.ContainsFunc(names, func(name types.NamespacedName) bool { return name.String() == requirement.Value })
	})
	return err
}

func (f *fixture) restart() {
	f.reconciler = f.newReconciler(shared.Get(f).Config(), f.client, f.reconciler.Options)
}

// requestLog counts the requests to the target cluster and can make them fail.
type requestLog struct {
	mu    sync.Mutex
	lines []string
	// fault returns an error for each request that must not be sent.
	fault func(*http.Request) error
}

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		l.mu.Lock()
		l.lines = append(l.lines, request.Method+" "+request.URL.Path)
		fault := l.fault
		l.mu.Unlock()
		if fault != nil {
			if err := fault(request); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// writes returns the write requests since the last call, in order.
func (l *requestLog) writes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var writes []string
	for _, line := range l.lines {
		if !strings.HasPrefix(line, http.MethodGet) {
			writes = append(writes, line)
		}
	}
	l.lines = nil
	return writes
}

func (l *requestLog) breakWith(fault func(*http.Request) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = fault
}

// secret writes a Secret with the given keys and values.
func (f *fixture) secret(name string, keysAndValues ...string) {
	f.Helper()
	data := map[string][]byte{}
	for i := 0; i < len(keysAndValues); i += 2 {
		data[keysAndValues[i]] = []byte(keysAndValues[i+1])
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Data: data}
	err := f.client.Create(f.ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = f.client.Update(f.ctx, secret)
	}
	must(f, err)
}

// managedResource creates a ManagedResource that refers to the Secrets.
func (f *fixture) managedResource(name string, secrets ...string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{}
	for _, secret := range secrets {
		mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, resourcesv1alpha1.LocalObjectReference{Name: secret})
	}
	must(f, f.client.Create(f.ctx, mr))
	return mr
}

// manage writes a Secret with the given name and a ManagedResource with the same name.
func (f *fixture) manage(name string, documents ...string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	f.secret(name, "objects.yaml", strings.Join(documents, "\n---\n"))
	return f.managedResource(name, name)
}

// reconcile reconciles once and returns the ManagedResource as stored afterwards.
func (f *fixture) reconcile(name string) (*resourcesv1alpha1.ManagedResource, reconcile.Result, error) {
	f.Helper()
	f.catchUp()
	key := types.NamespacedName{Namespace: f.namespace, Name: name}
	result, err := f.reconciler.Reconcile(f.ctx, reconcile.Request{NamespacedName: key})
	mr := &resourcesv1alpha1.ManagedResource{}
	if getErr := f.client.Get(f.ctx, key, mr); !apierrors.IsNotFound(getErr) {
		must(f, getErr)
	}
	return mr, result, err
}

// event returns the next Event.
func (f *fixture) event() string {
	f.Helper()
	select {
	case event := <-f.recorder.Events:
		return event
	default:
		f.Fatal("no Event found")
		return ""
	}
}

// catchUp waits until the watches show the current state of the API server.
func (f *fixture) catchUp() {
	f.Helper()
	for gk := range f.reconciler.Live.Counts().Objects {
		f.eventually("the watch of "+gk.String()+" has caught up", func() bool {
			list := &metav1.PartialObjectMetadataList{}
			mapping, err := f.client.RESTMapper().RESTMapping(gk)
			if meta.IsNoMatchError(err) {
				return true // its definition is deleted
			}
			must(f, err)
			list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(gk.Kind + "List"))
			err = f.client.List(f.ctx, list, client.MatchingLabels{resourcesv1alpha1.LabelManagedBy: f.namespace})
			if apierrors.IsNotFound(err) {
				return true
			}
			must(f, err)
			count := f.reconciler.Live.Counts().Objects[gk]
			return count == len(list.Items) && f.shows(mapping.GroupVersionKind, list.Items)
		})
	}
}

// shows reports whether the watches show exactly these objects.
func (f *fixture) shows(gvk schema.GroupVersionKind, items []metav1.PartialObjectMetadata) bool {
	for _, item := range items {
		ref := object.Ref{GroupVersionKind: gvk, Namespace: item.Namespace, Name: item.Name}
		if f.reconciler.Live.Read(f.ctx, []object.Ref{ref})[ref.Key()].Observation.ResourceVersion != item.ResourceVersion {
			return false
		}
	}
	return true
}

// reconcileOnce reconciles once. It logs an error and goes on.
func (f *fixture) reconcileOnce(name string) {
	f.Helper()
	if _, _, err := f.reconcile(name); err != nil {
		f.Logf("reconcile %s: %v", name, err)
	}
}

// reconcileOK reconciles once. The reconcile must apply everything.
func (f *fixture) reconcileOK(name string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr, result, err := f.reconcile(name)
	must(f, err)
	if condition := applied(mr); condition.Status != resourcesv1alpha1.ConditionTrue {
		f.Fatalf("ResourcesApplied is %s %s: %s", condition.Status, condition.Reason, condition.Message)
	}
	if !atRest(result) {
		f.Fatalf("the requeue interval is %s, want %s", result.RequeueAfter, syncPeriod)
	}
	return mr
}

// reconcileUntil reconciles until done returns true, for at most 30 seconds.
func (f *fixture) reconcileUntil(name, reason string, done func(*resourcesv1alpha1.ManagedResource) bool) {
	f.Helper()
	kit.Eventually(f, reason, func() string {
		mr, _, err := f.reconcile(name)
		if done(mr) {
			return ""
		}
		return "the last reconcile ended with: " + kit.TextOf(err)
	})
}

func (f *fixture) eventually(reason string, done func() bool) {
	f.Helper()
	kit.EventuallyTrue(f, reason, done)
}

func (f *fixture) delete(mr *resourcesv1alpha1.ManagedResource) {
	f.Helper()
	must(f, f.client.Delete(f.ctx, mr))
	f.reconcileUntil(mr.Name, "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return mr.Name == ""
	})
}

func applied(mr *resourcesv1alpha1.ManagedResource) resourcesv1alpha1.Condition {
	for _, condition := range mr.Status.Conditions {
		if condition.Type == resourcesv1alpha1.ResourcesApplied {
			return condition
		}
	}
	return resourcesv1alpha1.Condition{}
}

// configMap returns the manifest of a ConfigMap in the fixture's namespace.
func (f *fixture) configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\ndata:\n  key: %q\n",
		name, f.namespace, value)
}

// liveConfigMap reads a ConfigMap. It returns nil if the ConfigMap does not exist.
func (f *fixture) liveConfigMap(name string) *corev1.ConfigMap {
	f.Helper()
	configMap := &corev1.ConfigMap{}
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, configMap)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(f, err)
	return configMap
}

func (f *fixture) wantConfigMap(name, value string) *corev1.ConfigMap {
	f.Helper()
	configMap := f.liveConfigMap(name)
	if configMap == nil {
		f.Fatalf("ConfigMap %s does not exist", name)
	}
	if configMap.Data["key"] != value {
		f.Fatalf("ConfigMap %s has the value %q, want %q", name, configMap.Data["key"], value)
	}
	return configMap
}

func (f *fixture) wantNoConfigMap(name string) {
	f.Helper()
	if f.liveConfigMap(name) != nil {
		f.Fatalf("ConfigMap %s exists", name)
	}
}

func wantContains(tb testing.TB, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%q is not in: %s", part, text)
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func fieldOwner(manager string) client.FieldOwner { return client.FieldOwner(manager) }
