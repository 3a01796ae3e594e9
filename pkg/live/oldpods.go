package live

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// concurrentCounts limits the counts that start at the same time. After a start, there may be one for each Deployment.
const concurrentCounts = 16

// oldPods determines whether Pods of old ReplicaSets of Deployments still exist, which Deployments report themselves
// since Kubernetes 1.35. It watches the Pods of a Deployment once for each rollout: from the end of the rollout until
// their number is the wanted one. It is safe for concurrent use.
type oldPods struct {
	// open returns the Collection of a kind.
	open  func(schema.GroupVersionKind) (target.Collection, error)
	clock clock.Clock
	slots chan struct{}

	mu      sync.Mutex
	running map[types.NamespacedName]*podCount
}

// podCount is the watch of the Pods of one Deployment.
type podCount struct {
	uid    types.UID
	wanted health.PodCount
	cancel context.CancelFunc
}

func newOldPods(open func(schema.GroupVersionKind) (target.Collection, error), clk clock.Clock) *oldPods {
	return &oldPods{
		open: open, clock: clk, slots: make(chan struct{}, concurrentCounts), running: map[types.NamespacedName]*podCount{},
	}
}

// awaitsCount reports whether Pods have to be counted to determine whether the object is rolled out.
func (o *Observation) awaitsCount() bool {
	return o != nil && o.verdict().OldPods != (health.PodCount{})
}

// follow counts the Pods of a Deployment if that is necessary, and stops the count when it no longer is. It passes each
// result to report. It reads the Deployment with held, so that the last of concurrent calls uses the last state.
func (p *oldPods) follow(ctx context.Context, key types.NamespacedName, held func() *Observation,
	report func(uid types.UID, wanted health.PodCount, found int),
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	observation := held()
	count, running := p.running[key]
	awaits := observation.awaitsCount()
	if running && awaits && count.uid == observation.UID && count.wanted == observation.Health.OldPods {
		return
	}
	if running {
		count.cancel()
		delete(p.running, key)
	}
	if !awaits {
		return
	}
	count = &podCount{uid: observation.UID, wanted: observation.Health.OldPods}
	ctx, count.cancel = context.WithCancel(ctx)
	p.running[key] = count
	go p.count(ctx, key.Namespace, count, report)
}

// deployments is the kind whose Pods are counted.
var deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// followPods returns a function that counts the Pods of a Deployment if that is necessary.
func (w *kindWatch) followPods(ctx context.Context, pods *oldPods) func(types.NamespacedName) {
	return func(key types.NamespacedName) {
		held := func() *Observation {
			observation, _ := w.store.get(key)
			return &observation
		}
		pods.follow(ctx, key, held, func(uid types.UID, wanted health.PodCount, found int) {
			w.store.recordCount(key, uid, wanted, found)
		})
	}
}

// count watches Pods until their number is the wanted one.
func (p *oldPods) count(ctx context.Context, namespace string, count *podCount, report func(types.UID, health.PodCount, int)) {
	defer count.cancel()
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	release := sync.OnceFunc(func() { <-p.slots })
	defer release()
	store := &podStore{relevant: map[types.NamespacedName]bool{}, counted: func(found int) {
		release()
		report(count.uid, count.wanted, found)
		if found == int(count.wanted.Replicas) {
			count.cancel()
		}
	}}
	done := func(err error) {
		if err != nil {
			release() // other counts may succeed
		}
		if apierrors.IsForbidden(err) || errors.Is(err, target.ErrKindNotServed) {
			report(count.uid, count.wanted, int(count.wanted.Replicas)) // rely on the status of the Deployment alone
		}
	}
	reading := podReader{open: p.open, namespace: namespace, selector: count.wanted.Selector, done: done}
	lister := &cache.ListWatch{ListWithContextFunc: reading.list, WatchFuncWithContext: reading.watch}
	reflector := cache.NewReflectorWithOptions(lister, &corev1.Pod{}, store,
		cache.ReflectorOptions{Name: "old pods", Clock: p.clock, Backoff: rewatch.Backoff()})
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard())) // the watch of Deployments logs an outage, once
}

// podReader reads Pods. It opens the Collection for each request, because the API server may be unavailable at the
// first one.
type podReader struct {
	open                func(schema.GroupVersionKind) (target.Collection, error)
	namespace, selector string
	// done is called with the result of each request.
	done func(error)
}

func (r podReader) list(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
	defer func() { r.done(err) }()
	pods, err := r.open(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		return nil, err
	}
	options.LabelSelector = r.selector
	return pods.In(r.namespace).List(ctx, options)
}

func (r podReader) watch(ctx context.Context, options metav1.ListOptions) (events watch.Interface, err error) {
	defer func() { r.done(err) }()
	pods, err := r.open(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		return nil, err
	}
	options.LabelSelector = r.selector
	return pods.In(r.namespace).Watch(ctx, options)
}

// podStore counts the relevant Pods that a reflector shows.
type podStore struct {
	mu       sync.Mutex
	relevant map[types.NamespacedName]bool
	counted  func(found int)
}

var _ cache.ReflectorStore = &podStore{}

// Add stores a Pod from the watch.
func (s *podStore) Add(obj any) error { return s.put(obj, true) }

// Update stores a Pod from the watch.
func (s *podStore) Update(obj any) error { return s.put(obj, true) }

// Delete removes a deleted Pod.
func (s *podStore) Delete(obj any) error { return s.put(obj, false) }

func (s *podStore) put(obj any, exists bool) error {
	pod, is := obj.(*corev1.Pod)
	if !is {
		return fmt.Errorf("a %T was watched instead of a Pod", obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	delete(s.relevant, key)
	if exists && health.RelevantPod(pod) {
		s.relevant[key] = true
	}
	s.counted(len(s.relevant))
	return nil
}

// Replace stores the first list, and the list after each interruption of the watch.
func (s *podStore) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.relevant)
	for _, obj := range list {
		if pod, is := obj.(*corev1.Pod); is && health.RelevantPod(pod) {
			s.relevant[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
		}
	}
	s.counted(len(s.relevant))
	return nil
}

// Resync does nothing, because the store has no other source.
func (s *podStore) Resync() error { return nil }
