package live

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// firstCounts bounds how many counts begin at once: after a start there may be one for each Deployment.
const firstCounts = 16

// oldPods finds out whether Pods of former ReplicaSets of Deployments are still there, which Deployments tell themselves
// since Kubernetes 1.35. It watches the Pods of a Deployment from the end of a rollout until they are as many as wanted, and
// once only. It is safe for concurrent use.
type oldPods struct {
	objects *target.Objects
	slots   chan struct{}

	mu      sync.Mutex
	running map[types.NamespacedName]*podCount
}

// podCount is the watch of the Pods of one Deployment.
type podCount struct {
	uid    types.UID
	wanted health.PodCount
	cancel context.CancelFunc
}

func newOldPods(objects *target.Objects) *oldPods {
	return &oldPods{objects: objects, slots: make(chan struct{}, firstCounts), running: map[types.NamespacedName]*podCount{}}
}

// awaitsCount tells whether Pods have to be counted to say whether the object is rolled out.
func (o *Observation) awaitsCount() bool {
	return o != nil && o.verdict().OldPods != (health.PodCount{})
}

// follow counts the Pods of a Deployment if that is needed, and stops when it is not any more. Each result is passed to tell.
// What is held of the Deployment is asked for here, so that of calls at the same time the last one knows the last state.
func (p *oldPods) follow(ctx context.Context, key types.NamespacedName, held func() *Observation, tell func(uid types.UID, wanted health.PodCount, found int)) {
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
	go p.count(ctx, key.Namespace, count, tell)
}

// deployments are the kind of which Pods are counted.
var deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// followPods returns what is to be told about each Deployment.
func (w *kindWatch) followPods(ctx context.Context, pods *oldPods) func(types.NamespacedName) {
	return func(key types.NamespacedName) {
		held := func() *Observation { return w.store.get(key) }
		pods.follow(ctx, key, held, func(uid types.UID, wanted health.PodCount, found int) {
			w.store.noteCount(key, uid, wanted, found)
		})
	}
}

// count watches Pods until they are as many as wanted.
func (p *oldPods) count(ctx context.Context, namespace string, count *podCount, tell func(types.UID, health.PodCount, int)) {
	defer count.cancel()
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	release := sync.OnceFunc(func() { <-p.slots })
	defer release()
	pods, err := p.objects.Whole(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		return // no Deployment has Pods where there are none
	}
	reading := pods.In(namespace)
	store := &podStore{relevant: map[types.NamespacedName]bool{}, counted: func(found int) {
		release()
		tell(count.uid, count.wanted, found)
		if found == int(count.wanted.Replicas) {
			count.cancel()
		}
	}}
	note := func(err error) {
		if err != nil {
			release() // others may have more luck
		}
		if apierrors.IsForbidden(err) {
			tell(count.uid, count.wanted, int(count.wanted.Replicas)) // the Deployment alone has to tell
		}
	}
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = count.wanted.Selector
			list, err := reading.List(ctx, options)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = count.wanted.Selector
			events, err := reading.Watch(ctx, options)
			note(err)
			return events, err
		},
	}
	cache.NewReflectorWithOptions(lister, &corev1.Pod{}, store, cache.ReflectorOptions{Name: "old pods"}).RunWithContext(ctx)
}

// podStore counts the relevant ones among the Pods that a reflector shows.
type podStore struct {
	mu       sync.Mutex
	relevant map[types.NamespacedName]bool
	counted  func(found int)
}

var _ cache.ReflectorStore = &podStore{}

// Add takes in a Pod that was seen.
func (s *podStore) Add(obj any) error { return s.note(obj, true) }

// Update takes in a Pod that was seen.
func (s *podStore) Update(obj any) error { return s.note(obj, true) }

// Delete takes out a Pod that is gone.
func (s *podStore) Delete(obj any) error { return s.note(obj, false) }

func (s *podStore) note(obj any, exists bool) error {
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

// Replace takes in the first list, and each one after a watch that broke.
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

// Resync does nothing: there is nothing that could be seen anew.
func (s *podStore) Resync() error { return nil }
