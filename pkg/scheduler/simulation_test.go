package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/scheduler/decision"
)

// world is a simulated API server with a watch that lags behind, and the scheduler that uses it.
type world struct {
	testing.TB
	*rand.Rand
	version int
	// live are the Shoots in the API server, shown those in the cache. later are the watch events that were not delivered yet.
	live, shown map[types.NamespacedName]*corev1beta1.Shoot
	later       []func()
	seeds       []corev1beta1.Seed
	// faults is the share of the bindings whose result is lost, in percent. reports is the number of written statuses.
	faults, reports int

	scheduler *reconciler
	queue     queue
}

// places is the number of Shoots that each Seed can host.
const places = 3

func newWorld(tb testing.TB, r *rand.Rand, seeds, places int) *world {
	tb.Helper()
	w := &world{TB: tb, Rand: r, live: map[types.NamespacedName]*corev1beta1.Shoot{}, shown: map[types.NamespacedName]*corev1beta1.Shoot{}}
	for i := range seeds {
		seed := corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("seed-%03d", i)}}
		seed.Spec.Provider = corev1beta1.SeedProvider{Type: "local", Region: "r"}
		seed.Spec.Networks = corev1beta1.SeedNetworks{Nodes: ptr.To("10.10.0.0/16"), Pods: "10.11.0.0/16", Services: "10.12.0.0/16"}
		seed.Status.LastOperation = &corev1beta1.LastOperation{}
		seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}}
		seed.Status.Allocatable = corev1.ResourceList{corev1beta1.SeedResourceShoots: *resource.NewQuantity(int64(places), resource.DecimalSI)}
		w.seeds = append(w.seeds, seed)
	}
	w.restart()
	return w
}

// restart replaces the scheduler by a new leader, whose cache is as old as that of the one before.
func (w *world) restart() {
	if w.queue != nil {
		w.queue.ShutDown()
	}
	w.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	w.scheduler = &reconciler{
		cached: w, garden: w, recorder: &events.FakeRecorder{}, clock: clock.RealClock{}, strategy: decision.SameRegion, ledger: newLedger(), waiting: newWaiting(),
	}
	w.scheduler.queue.Store(&w.queue)
	for _, shoot := range w.shown {
		w.handler().Create(w.Context(), event.TypedCreateEvent[*corev1beta1.Shoot]{Object: shoot}, w.queue)
	}
}

func (w *world) handler() interface {
	Create(context.Context, event.TypedCreateEvent[*corev1beta1.Shoot], queue)
	Update(context.Context, event.TypedUpdateEvent[*corev1beta1.Shoot], queue)
	Delete(context.Context, event.TypedDeleteEvent[*corev1beta1.Shoot], queue)
} {
	return w.scheduler.shoots()
}

// write stores a Shoot, or removes it if it is nil, and queues the event.
func (w *world) write(key types.NamespacedName, shoot *corev1beta1.Shoot) {
	w.version++
	if shoot == nil {
		delete(w.live, key)
	} else {
		shoot.ResourceVersion = strconv.Itoa(w.version)
		w.live[key] = shoot
	}
	w.later = append(w.later, func() {
		before, shown := w.shown[key]
		switch {
		case shoot == nil:
			delete(w.shown, key)
			w.handler().Delete(w.Context(), event.TypedDeleteEvent[*corev1beta1.Shoot]{Object: before}, w.queue)
		case shown:
			w.shown[key] = shoot
			w.handler().Update(w.Context(), event.TypedUpdateEvent[*corev1beta1.Shoot]{ObjectOld: before, ObjectNew: shoot}, w.queue)
		default:
			w.shown[key] = shoot
			w.handler().Create(w.Context(), event.TypedCreateEvent[*corev1beta1.Shoot]{Object: shoot}, w.queue)
		}
	})
}

func (w *world) deliver() {
	if len(w.later) > 0 {
		next := w.later[0]
		w.later = w.later[1:]
		next()
	}
}

func (w *world) create(name string) {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name, Generation: 1}}
	shoot.UID = types.UID(fmt.Sprintf("%s-%d", name, w.version))
	shoot.Spec.Provider.Type, shoot.Spec.Region, shoot.Spec.CloudProfileName = "local", "r", ptr.To("profile")
	w.write(client.ObjectKeyFromObject(shoot), shoot)
}

// reconcile handles one request of the queue, and checks that no Seed has too many Shoots.
func (w *world) reconcile() {
	if w.queue.Len() == 0 {
		return
	}
	request, _ := w.queue.Get()
	if _, err := w.scheduler.Reconcile(w.Context(), request); err != nil {
		w.queue.Add(request)
	}
	w.queue.Done(request)
	usage := map[string]int{}
	for _, shoot := range w.live {
		if shoot.Spec.SeedName != nil {
			if usage[*shoot.Spec.SeedName]++; usage[*shoot.Spec.SeedName] > places {
				w.Fatalf("%s has %d Shoots", *shoot.Spec.SeedName, usage[*shoot.Spec.SeedName])
			}
		}
	}
}

var shoots = schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}

// current returns a copy of a Shoot for a write, or a conflict.
func (w *world) current(read *corev1beta1.Shoot) (*corev1beta1.Shoot, error) {
	live := w.live[client.ObjectKeyFromObject(read)]
	switch {
	case live == nil:
		return nil, apierrors.NewNotFound(shoots, read.Name)
	case live.UID != read.UID || live.ResourceVersion != read.ResourceVersion:
		return nil, apierrors.NewConflict(shoots, read.Name, errors.New("it has changed"))
	}
	return live.DeepCopy(), nil
}

func (w *world) Bind(_ context.Context, read *corev1beta1.Shoot, seed string) (*corev1beta1.Shoot, error) {
	lost := w.IntN(100) < w.faults
	if lost && w.IntN(2) == 0 {
		return nil, errors.New("the request did not arrive")
	}
	shoot, err := w.current(read)
	if err != nil {
		return nil, err
	}
	shoot.Spec.SeedName, shoot.Status.LastOperation = &seed, nil
	shoot.Generation++
	w.write(client.ObjectKeyFromObject(shoot), shoot)
	if lost {
		return nil, errors.New("the response did not arrive")
	}
	return shoot, nil
}

func (w *world) Report(_ context.Context, read *corev1beta1.Shoot, operation corev1beta1.LastOperation) error {
	shoot, err := w.current(read)
	if err != nil {
		return err
	}
	w.reports++
	shoot.Status.LastOperation = &operation
	w.write(client.ObjectKeyFromObject(shoot), shoot)
	return nil
}

func (w *world) Read(_ context.Context, key client.ObjectKey) (*corev1beta1.Shoot, error) {
	if shoot := w.live[key]; shoot != nil {
		return shoot, nil
	}
	return nil, apierrors.NewNotFound(shoots, key.Name)
}

func (w *world) Count(context.Context) (version string, all []place, uids []types.UID, err error) {
	for _, shoot := range w.live {
		all, uids = append(all, place{version: shoot.ResourceVersion, seeds: seedsOf(shoot)}), append(uids, shoot.UID)
	}
	return strconv.Itoa(w.version), all, uids, nil
}

// Get implements client.Reader with what the cache shows.
func (w *world) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch into := object.(type) {
	case *corev1beta1.Shoot:
		shown := w.shown[key]
		if shown == nil {
			return apierrors.NewNotFound(shoots, key.Name)
		}
		shown.DeepCopyInto(into)
	case *corev1beta1.CloudProfile:
		into.Name = key.Name
	}
	return nil
}

// List implements client.Reader.
func (w *world) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if into, is := list.(*corev1beta1.SeedList); is {
		into.Items = w.seeds
	}
	return nil
}
