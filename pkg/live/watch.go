package live

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	// firstSync is how long a new watch may take to show all objects before they are read one by one instead.
	firstSync = 30 * time.Second
	// listTimeout bounds one page of a list. The API server itself ends requests after a minute.
	listTimeout = time.Minute
	// outage is how long a watch may fail before its objects are read one by one instead, so that what is wrong is noticed.
	outage = time.Minute
)

// retryWatch are the delays before a watch that broke is begun anew. Client-go's own go up to 30 seconds, in which drift
// would go unnoticed.
func retryWatch(clk clock.Clock) wait.DelayFunc {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 10 * time.Second}
	return backoff.DelayWithReset(clk, 30*time.Second)
}

// kindWatch watches the objects of one kind that have the managed-by label.
type kindWatch struct {
	gk     schema.GroupKind
	store  *store
	clock  clock.Clock
	cancel context.CancelFunc
	// namespaces are those that are watched; nil for all, or a kind without namespaces.
	namespaces []string

	mu sync.Mutex
	// unsynced counts the namespaces of which not all objects were seen yet.
	unsynced int
	// failing is since when the watch fails; zero if it does not.
	failing time.Time
	// unserved is set if the kind is not served any more, hopeless if it cannot be watched.
	unserved, hopeless bool
	// decided is closed as soon as the watch is in sync, or fails.
	decided chan struct{}
}

// usable waits for a new watch, and tells whether what it shows is the state of the cluster.
func (w *kindWatch) usable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, firstSync)
	defer cancel()
	select {
	case <-w.decided:
	case <-ctx.Done():
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsynced == 0 && !w.hopeless && !w.unserved && (w.failing.IsZero() || w.clock.Since(w.failing) < outage)
}

// covers tells whether the objects of a namespace are watched.
func (w *kindWatch) covers(namespace string) bool {
	return w.namespaces == nil || slices.Contains(w.namespaces, namespace)
}

// run watches until the context ends or there is no hope.
func (w *kindWatch) run(ctx context.Context, collection target.Collection, managedBy string) {
	namespaces := w.namespaces
	if namespaces == nil {
		namespaces = []string{metav1.NamespaceAll}
	}
	w.unsynced = len(namespaces)
	for _, namespace := range namespaces {
		part := &part{store: w.store, synced: sync.OnceFunc(w.synced), namespace: namespace}
		go w.runIn(ctx, part, collection.In(namespace), managedBy)
	}
}

func (w *kindWatch) runIn(ctx context.Context, part *part, reading target.Reading, managedBy string) {
	selector := labels.Set{resourcesv1alpha1.LabelManagedBy: managedBy}.String()
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			list, err := reading.List(ctx, options)
			w.note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			events, err := reading.Watch(ctx, options)
			w.note(ctx, err)
			return events, err
		},
	}
	reflector := cache.NewReflectorWithOptions(lister, nil, part,
		cache.ReflectorOptions{Name: "live " + w.gk.String(), Clock: w.clock})
	_ = retryWatch(w.clock).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil {
			w.note(ctx, err)
		}
		return false, nil
	})
}

// note takes in how a request of the watch ended.
func (w *kindWatch) note(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err): // a new list mends it
	case err == nil:
		w.failing = time.Time{}
	case isRefused(err):
		// The API server may not know yet how to stream a list; then a plain one follows, and tells.
	default:
		if w.failing.IsZero() {
			w.failing = w.clock.Now()
			log.FromContext(ctx).WithName("live").Error(err, "Cannot watch objects of the target cluster; until that works, they are "+
				"read one by one, and drift is noticed at the sync period only", "kind", w.gk.String())
		}
		w.unserved, w.hopeless = apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err)
		if w.unserved || w.hopeless {
			w.cancel()
		}
		if w.unsynced > 0 {
			w.decide()
		}
	}
}

// isRefused tells whether the API server refused the way in which something was asked for.
func isRefused(err error) bool {
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

// ended tells whether the watch has given up because its kind was not served, and is worth another try.
func (w *kindWatch) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unserved
}

// state names the state of the watch.
func (w *kindWatch) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.hopeless || w.unserved:
		return stateImpossible
	case !w.failing.IsZero():
		return stateFailing
	case w.unsynced > 0:
		return stateStarting
	}
	return stateWatching
}

// part is the store as it is seen by the reflector of one namespace.
type part struct {
	*store
	synced    func()
	namespace string
}

// Replace takes in a list of all objects of the namespace.
func (p *part) Replace(list []any, resourceVersion string) error {
	if err := p.replace(list, resourceVersion, p.namespace); err != nil {
		return err
	}
	p.synced()
	return nil
}
