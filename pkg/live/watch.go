package live

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	// firstSync is how long a new watch may take to show all objects. After that, they are read one by one.
	firstSync = 30 * time.Second
	// listTimeout limits the duration of one page of a list. The API server itself ends requests after a minute.
	listTimeout = time.Minute
	// outage is how long a watch may fail before its objects are read one by one, so that the cause of the failure is
	// noticed.
	outage = time.Minute
)

// retryDenied returns the delays before a request is repeated that the API server denied, for example because
// permissions are missing. Another result is unlikely soon.
func retryDenied(clk clock.Clock) wait.DelayFunc {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 10 * time.Second}
	return backoff.DelayWithReset(clk, 30*time.Second)
}

// isDenied reports whether the error is the response of a working API server.
func isDenied(err error) bool {
	return err != nil && !rewatch.IsOutage(err) && !isRejected(err) && !isOutdated(err)
}

// isOutdated reports whether a resourceVersion is too old to continue a watch, so that a list is required.
func isOutdated(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// kindWatch watches the objects of one kind that have the managed-by label.
type kindWatch struct {
	gk schema.GroupKind
	// version is the version in which the kind was first requested.
	version string
	store   *store
	clock   clock.Clock
	cancel  context.CancelFunc
	// namespaces are the watched namespaces. It is nil for all namespaces and for cluster-scoped kinds.
	namespaces []string

	mu sync.Mutex
	// unsynced counts the namespaces whose objects have not all been shown yet.
	unsynced int
	// failing is when the watch started to fail. It is zero if the watch does not fail.
	failing time.Time
	// unserved is set if the kind is no longer served, unwatchable if it cannot be watched.
	unserved, unwatchable bool
	// decided is closed as soon as the watch is in sync or fails, or after firstSync.
	decided chan struct{}
}

// usable waits for a new watch, and reports whether the watch shows the state of the cluster.
func (w *kindWatch) usable(ctx context.Context) bool {
	select {
	case <-w.decided:
	case <-ctx.Done():
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsynced == 0 && !w.unwatchable && !w.unserved && (w.failing.IsZero() || w.clock.Since(w.failing) < outage)
}

// covers reports whether the objects of a namespace are watched.
func (w *kindWatch) covers(namespace string) bool {
	return w.namespaces == nil || slices.Contains(w.namespaces, namespace)
}

// run watches until the context ends or the kind turns out to be unserved or unwatchable.
func (w *kindWatch) run(ctx context.Context, collection target.Collection, managedBy string) {
	namespaces := w.namespaces
	if namespaces == nil {
		namespaces = []string{metav1.NamespaceAll}
	}
	w.unsynced = len(namespaces)
	go w.limit(ctx)
	for _, namespace := range namespaces {
		part := &part{store: w.store, synced: sync.OnceFunc(w.synced), namespace: namespace}
		go w.runIn(ctx, part, collection.In(namespace), managedBy)
	}
}

// limit ends the wait for a watch that neither starts nor fails in time. The time starts with the watch, so that the
// waits for all kinds run concurrently, and only once.
func (w *kindWatch) limit(ctx context.Context) {
	timer := w.clock.NewTimer(firstSync)
	defer timer.Stop()
	select {
	case <-w.decided:
	case <-ctx.Done(): // waiting callers then read the objects one by one
		w.mu.Lock()
		defer w.mu.Unlock()
		w.decide()
	case <-timer.C():
		w.fail(ctx, errors.New("the watch has not shown all objects within "+firstSync.String()))
	}
}

func (w *kindWatch) runIn(ctx context.Context, part *part, reading target.Reading, managedBy string) {
	selector := labels.Set{resourcesv1alpha1.LabelManagedBy: managedBy}.String()
	denied := retryDenied(w.clock)
	answered := func(err error) {
		w.recordResult(ctx, err)
		if isDenied(err) {
			select {
			case <-w.clock.After(denied()):
			case <-ctx.Done():
			}
		}
	}
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			list, err := reading.List(ctx, options)
			answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			events, err := reading.Watch(ctx, options)
			answered(err)
			return events, err
		},
	}
	part.failed = func(err error) { w.recordResult(ctx, err) }
	reflector := cache.NewReflectorWithOptions(lister, nil, part,
		cache.ReflectorOptions{Name: "live " + w.gk.String(), Clock: w.clock, Backoff: rewatch.Backoff()})
	// recordResult logs failures once, while the reflector would log each of them.
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// recordResult records the result of a request of the watch. The context is that of the watch.
func (w *kindWatch) recordResult(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil || isOutdated(err): // a new list follows
	case err == nil:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failing = time.Time{}
	case isRejected(err):
		// The API server may not support streaming lists. A regular list follows, whose result counts.
	default:
		w.fail(ctx, err)
	}
}

// fail records the failure of the watch.
func (w *kindWatch) fail(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing.IsZero() {
		w.failing = w.clock.Now()
		log.FromContext(ctx).WithName("live").Error(err, "Cannot watch objects of the target cluster; until the watch works, they are "+
			"read one by one, and drift is only noticed at the sync period", "kind", w.gk.String())
	}
	w.unserved, w.unwatchable = apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err)
	if w.unserved || w.unwatchable {
		w.cancel()
	}
	if w.unsynced > 0 {
		w.decide()
	}
}

// isRejected reports whether the API server rejected the form of a request.
func isRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func (w *kindWatch) synced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsynced--; w.unsynced == 0 {
		w.failing = time.Time{}
		w.decide()
	}
}

func (w *kindWatch) decide() {
	select {
	case <-w.decided:
	default:
		close(w.decided)
	}
}

// States of a watch, for metrics.
const (
	stateWatching   = "watching"
	stateStarting   = "starting"
	stateFailing    = "failing"
	stateImpossible = "impossible"
)

// ended reports whether the watch ended because its kind was not served, so that another attempt is reasonable.
func (w *kindWatch) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unserved
}

// state returns the state of the watch for metrics.
func (w *kindWatch) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.unwatchable || w.unserved:
		return stateImpossible
	case !w.failing.IsZero():
		return stateFailing
	case w.unsynced > 0:
		return stateStarting
	}
	return stateWatching
}

// part is the store from the perspective of the reflector of one namespace.
type part struct {
	*store
	synced    func()
	failed    func(error)
	namespace string
}

// Replace stores a list of all objects of the namespace.
func (p *part) Replace(list []any, resourceVersion string) error {
	if err := p.replace(list, resourceVersion, p.namespace); err != nil {
		p.failed(err)
		return err
	}
	p.synced()
	return nil
}
