package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
	healthcontroller "github.com/trellis-k8s/trellis/pkg/health/controller"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// settings are what tests have different from the defaults of the configuration.
type settings struct {
	syncPeriod           time.Duration
	progressingThreshold time.Duration
	otherKinds           health.OtherKinds
}

// resourceManager is a running resource-manager, wired as the program wires it.
type resourceManager struct {
	class   string
	live    *live.View
	objects *target.Objects
	// source and target are the requests to both clusters.
	source, target *requests
}

// managers counts them.
var managers atomic.Int64

// startManager starts a resource-manager that ends with the test. Its class, identity and managed-by label are its own, so
// that those of other tests have nothing to do with it. Nothing is looked at without an event.
func (f *fixture) startManager(tune ...func(*settings)) *resourceManager {
	f.Helper()
	s := settings{syncPeriod: time.Hour, otherKinds: health.OtherKindsFailuresOnly}
	for _, change := range tune {
		change(&s)
	}
	m := &resourceManager{class: fmt.Sprintf("class-%d", managers.Add(1)), source: &requests{}, target: &requests{}}
	sourceConfig, targetConfig := f.controlPlane.Config(), f.controlPlane.Config()
	sourceConfig.Wrap(m.source.wrap)
	targetConfig.Wrap(m.target.wrap)

	mgr, err := manager.New(sourceConfig, manager.Options{
		Scheme: scheme(f), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller:              ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout: ptr.To(10 * time.Second),
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&resourcesv1alpha1.ManagedResource{}: {Transform: managedresource.NewCompactor().Compact},
			},
		},
	})
	must(f, err)
	must(f, m.addControllers(f.ctx, mgr, targetConfig, s))

	ctx, cancel := context.WithCancel(context.WithoutCancel(f.ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("the resource-manager: %v", err)
		}
	})
	return m
}

func (m *resourceManager) addControllers(ctx context.Context, mgr manager.Manager, targetConfig *rest.Config, s settings) error {
	targetCluster, err := cluster.New(targetConfig, func(options *cluster.Options) { options.Scheme = mgr.GetScheme() })
	if err != nil {
		return err
	}
	if m.objects, err = target.NewObjects(targetConfig, targetCluster.GetHTTPClient()); err != nil {
		return err
	}
	examiner := health.NewExaminer(s.otherKinds, nil)
	m.live = live.NewView(live.Options{
		Objects: m.objects, Policy: fieldowner.DefaultPolicy(), Examiner: examiner, ManagedBy: m.class, Clock: clock.RealClock{},
	})
	applier := managedresource.NewReconciler(managedresource.Reconciler{
		Source: mgr.GetClient(), Direct: mgr.GetAPIReader(), Autoscalers: targetCluster.GetCache(), Objects: m.objects, Live: m.live,
		Engine:   apply.NewEngine(m.objects, fieldowner.DefaultPolicy(), clock.RealClock{}),
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: managedresource.Options{
			Class: m.class, ClusterID: m.class, ManagedBy: m.class, SyncPeriod: s.syncPeriod, PruneDelay: 100 * time.Millisecond,
			ConcurrentSyncs: 10, Limits: managedresource.DefaultLimits(),
		},
	})
	examining := healthcontroller.NewReconciler(healthcontroller.Reconciler{
		Source: mgr.GetClient(), Live: m.live, Examiner: examiner, Objects: m.objects,
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: healthcontroller.Options{
			Class: m.class, ClusterID: m.class, SyncPeriod: s.syncPeriod, ConcurrentSyncs: 5,
			ProgressingThreshold: s.progressingThreshold,
		},
	})
	return errors.Join(mgr.Add(targetCluster), applier.AddToManager(ctx, mgr, targetCluster.GetCache()), examining.AddToManager(mgr))
}

// requests are those that were sent to a cluster.
type requests struct {
	mu   sync.Mutex
	sent []request
	// open are the watches that have not ended, by path.
	open map[string]int
}

type request struct {
	method, path string
	watch        bool
}

func (r request) String() string { return r.method + " " + r.path }

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		watch, _ := strconv.ParseBool(sent.URL.Query().Get("watch"))
		r.mu.Lock()
		r.sent = append(r.sent, request{sent.Method, sent.URL.Path, watch})
		r.mu.Unlock()
		response, err := next.RoundTrip(sent)
		if err == nil && watch {
			path := sent.URL.Path + "?" + sent.URL.Query().Get("labelSelector")
			r.note(path, 1)
			response.Body = &body{ReadCloser: response.Body, closed: sync.OnceFunc(func() { r.note(path, -1) })}
		}
		return response, err
	})
}

// body tells when nobody reads it any more.
type body struct {
	io.ReadCloser
	closed func()
}

func (b *body) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

func (r *requests) note(path string, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[string]int{}
	}
	if r.open[path] += more; r.open[path] == 0 {
		delete(r.open, path)
	}
}

// watching returns the open watches of a resource in a namespace.
func (r *requests) watching(namespace, resource string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var watches []string
	for path := range r.open {
		if strings.Contains(path, "/namespaces/"+namespace+"/"+resource+"?") {
			watches = append(watches, path)
		}
	}
	return watches
}

// watched tells whether what a path ends with was ever watched.
func (r *requests) watched(suffix string) bool {
	return slices.ContainsFunc(r.all(), func(sent request) bool { return sent.watch && strings.HasSuffix(sent.path, suffix) })
}

// forget drops what was sent so far.
func (r *requests) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

// all returns what was sent since the last call of forget.
func (r *requests) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

// single returns what was sent and is no watch.
func (r *requests) single() []request {
	return slices.DeleteFunc(r.all(), func(sent request) bool { return sent.watch })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
