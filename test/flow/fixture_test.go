// Package flow tests the machinery of flows, and the example flow, on a real API server.
package flow

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	example "github.com/trellis-k8s/trellis/examples/flow"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var shared controlplane.Shared

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, resourcesv1alpha1.AddToScheme(scheme))
	kit.Must(t, apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// world is a namespace with a site.
type world struct {
	*testing.T
	cp        *controlplane.ControlPlane
	client    client.Client
	scheme    *runtime.Scheme
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cp := shared.Get(t)
	kit.DefineManagedResources(t, cp.Config())
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	_, err = envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{MaxTime: kit.WaitTimeout, Paths: []string{
		filepath.Join(root, "config", "crd", "extensions", "extensions.gardener.cloud_infrastructures.yaml"),
	}})
	kit.Must(t, err)
	w := &world{T: t, cp: cp, scheme: newScheme(t)}
	w.client, err = client.New(cp.Config(), client.Options{Scheme: w.scheme})
	kit.Must(t, err)
	w.namespace = kit.NewNamespace(t, w.client, "flow", nil)
	return w
}

// startFlow runs the example flow until the returned function is called, and records the requests that it sends.
func (w *world) startFlow(version string) (requests *kit.Requests, stop func()) {
	w.Helper()
	return w.startFlowWith(example.Options{Version: version, Pacing: example.DefaultPacing(), Clock: clock.RealClock{}})
}

func (w *world) startFlowWith(flowOptions example.Options) (requests *kit.Requests, stop func()) {
	w.Helper()
	requests = &kit.Requests{}
	config := w.cp.Config()
	config.Wrap(requests.Wrap)
	options := kit.ManagerOptions(w.scheme)
	options.Cache = cache.Options{
		NewInformer: rewatch.NewInformer, DefaultNamespaces: map[string]cache.Config{w.namespace: {}}, ByObject: example.CacheOptions(),
	}
	mgr, err := manager.New(config, options)
	kit.Must(w, err)
	sites, err := example.New(w.Context(), mgr, flowOptions)
	kit.Must(w, err)
	kit.Must(w, sites.AddToManager(mgr))
	return requests, kit.Run(w, mgr)
}

// writes returns the write requests.
func writes(requests *kit.Requests) []string { return requests.Writes() }

func (w *world) declare(data map[string]string) *corev1.ConfigMap {
	w.Helper()
	site := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "site", Labels: map[string]string{example.LabelSite: "true"}}, Data: data,
	}
	kit.Must(w, w.client.Create(w.Context(), site))
	return site
}

func (w *world) change(data map[string]string) {
	w.Helper()
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "site"}}
	kit.Change(w, w.client, site, func() { site.Data = data })
}

func (w *world) get(object client.Object, name string) bool {
	w.Helper()
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, object)
	if !apierrors.IsNotFound(err) {
		kit.Must(w, err)
	}
	return err == nil
}

func (w *world) mr(name string) *resourcesv1alpha1.ManagedResource {
	w.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	if !w.get(mr, name) {
		return nil
	}
	return mr
}

func (w *world) network() *unstructured.Unstructured {
	w.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(example.NetworkKind)
	if !w.get(u, "site") {
		return nil
	}
	return u
}

// answer responds like the extension: it reports the addresses of the network.
func (w *world) answer(addresses ...any) {
	w.Helper()
	kit.EventuallyTrue(w, "the network has a response", func() bool {
		network := w.network()
		if network == nil {
			return false
		}
		network.Object["status"] = map[string]any{
			"observedGeneration": network.GetGeneration(), "egressCIDRs": addresses,
			"lastOperation": map[string]any{
				"state": "Succeeded", "type": "Reconcile", "progress": int64(100), "description": "done",
				"lastUpdateTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
			},
		}
		err := w.client.Status().Update(w.Context(), network)
		if !apierrors.IsConflict(err) {
			kit.Must(w, err)
		}
		return err == nil
	})
}

// eventuallyData waits until a ConfigMap has a value.
func (w *world) eventuallyData(name, key, value string) {
	w.Helper()
	kit.Eventually(w, "ConfigMap "+name+" has "+value, func() string {
		var object corev1.ConfigMap
		switch {
		case !w.get(&object, name):
			return "the ConfigMap does not exist;  " + w.reported()
		case object.Data[key] != value:
			return key + " is " + object.Data[key] + "; " + w.reported()
		}
		return ""
	})
}

func (w *world) reported() string {
	w.Helper()
	var site corev1.ConfigMap
	if !w.get(&site, "site") {
		return "the site does not exist"
	}
	return site.Annotations[example.AnnotationReport]
}

// eventuallyReported waits for a state of the last operation whose report contains a text.
func (w *world) eventuallyReported(state, text string) flow.Report {
	w.Helper()
	var report flow.Report
	kit.Eventually(w, "the site reports "+state+" "+text, func() string {
		said := w.reported()
		report = flow.Report{}
		if err := json.Unmarshal([]byte(said), &report); err != nil {
			return said
		}
		if string(report.LastOperation.State) != state || !strings.Contains(said, text) {
			return said
		}
		return ""
	})
	return report
}

// quiet waits until a flow has sent nothing for a while, and drops the recorded requests.
func quiet(t *testing.T, requests *kit.Requests) {
	t.Helper()
	steady := kit.Steady(time.Second)
	kit.EventuallyTrue(t, "the flow is at rest", func() bool {
		count := len(requests.Single())
		return steady(count) && count > 0
	})
}

func always(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}
