package trouble

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// TestWatchFaults disturbs the watches of both clusters while users change everything. In the end the declared
// state must be established, and no anchor may have been deleted.
func TestWatchFaults(t *testing.T) {
	for name, disturb := range map[string]func(count int64) stream{
		"delayed":    func(int64) stream { return stream{delay: 2 * time.Second} },
		"duplicated": func(int64) stream { return stream{times: 2} },
		"dropped":    func(count int64) stream { return stream{most: 5 + int(count%7)} },
		"everything": func(count int64) stream {
			return stream{delay: time.Duration(count%4) * 500 * time.Millisecond, times: int(count % 3), most: int(count%3) * 10}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			source, target := newProxy(t, w.controlPlane.Config()), newProxy(t, w.controlPlane.Config())
			var count atomic.Int64
			for _, p := range []*proxy{source, target} {
				p.disturb(func(*http.Request) stream { return disturb(count.Add(1)) })
			}
			w.startManager(throughProxy(source, target))
			s := w.newStorm(1, 3, 10)
			s.begin()
			s.rage(60, 50*time.Millisecond)
			s.calm()
			t.Logf("%v, %d watches", s.done, count.Load())
		})
	}
}

// startBehindGate starts a resource-manager whose watch of ManagedResources passes through a gate, and a witness
// of the passed events.
func (w *world) startBehindGate(tune ...func(*inprocess.ResourceManager)) (*proxy, *gate, *witness) {
	w.Helper()
	source, shut, seen := newProxy(w.T, w.controlPlane.Config()), &gate{}, &witness{}
	source.disturb(onResource("managedresources", stream{gate: shut, sees: seen.sees}))
	w.Cleanup(shut.open)
	w.startManager(append(tune, throughProxy(source, nil))...)
	return source, shut, seen
}

// TestDeletionIsNotDecidedByAStaleView removes two objects from the manifests. The second one must be deleted
// after the first one, which a finalizer keeps. Later changes to the declaration of the second object, and later
// writes, do not appear in the watch of ManagedResources: only the API server knows them.
func TestDeletionIsNotDecidedByAStaleView(t *testing.T) {
	leaves := configMap("leaves", "1")
	in, out := []string{configMap("stays", "1"), leaves}, []string{configMap("stays", "1")}
	for name, test := range map[string]struct {
		say, mend func(w *world)
		// said is a text that the ManagedResource contains from then on.
		said string
	}{
		"it is put in again by another Secret": {
			said: `"name":"third"`,
			say: func(w *world) {
				w.note("set", in)
				w.secret("third", in...)
				w.refer("set", "third")
			},
			mend: func(*world) {},
		},
		"the ManagedResource is to be ignored": {
			said: resourcesv1alpha1.AnnotationIgnore,
			say:  func(w *world) { kit.Must(w, w.change("set", ignore)) },
			// The order matters: otherwise the deletion is requested again.
			mend: func(w *world) {
				w.note("set", in)
				w.refer("set", "first")
				kit.Must(w, w.change("set", removeAnnotations))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			source, shut, _ := w.startBehindGate()
			held := later(service("held", 1))
			w.secret("first", in...)
			w.declare("set", append(slices.Clone(in), held)...)
			w.eventuallyHolds("at first")
			before := w.uid(leaves)
			w.patch(held, `{"metadata":{"finalizers":["example.org/held"]}}`)

			w.secret("second", out...)
			w.refer("set", "second")
			kit.EventuallyTrue(t, "the first object is being deleted", func() bool { return w.live(held).GetDeletionTimestamp() != nil })
			w.eventuallyApplied("set", progressing, resourcesv1alpha1.ReasonDeletionPending, "held")
			shut.closeBefore(test.said)
			test.say(w)
			w.patch(held, `{"metadata":{"finalizers":null}}`)
			source.Forget()
			kit.Eventually(t, "the resource-manager reads the second Secret repeatedly", func() string { return atLeast(2, readsOf(source, "secrets/second")) })
			if after := w.uid(leaves); after != before {
				t.Errorf("the wanted object had the UID %s, and has %q now", before, after)
			}
			test.mend(w)
			shut.open()
			w.eventuallyHolds("in the end")
			if after := w.uid(leaves); after != before {
				t.Errorf("the wanted object had the UID %s, and has %q now", before, after)
			}
		})
	}
}

// TestDeletion_ConcurrentWrite adds an object to the Secret again during a reconciliation that has read the Secret
// without it.
func TestDeletion_ConcurrentWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	target := newProxy(t, w.controlPlane.Config())
	shut, waiting := &gate{}, &atomic.Int64{}
	t.Cleanup(shut.open)
	target.breakWith(parked("/configmaps/stays", shut, waiting))
	w.startManager(throughProxy(nil, target), func(r *inprocess.ResourceManager) { r.PruneDelay = 0 })
	leaves := configMap("leaves", "1")
	w.declare("set", configMap("stays", "1"), leaves)
	w.eventuallyHolds("at first")
	before, answered := w.uid(leaves), waiting.Load()
	shut.close()
	w.declare("set", configMap("stays", "2"))
	kit.EventuallyTrue(t, "a reconciliation is running", func() bool { return waiting.Load() > answered })
	w.declare("set", configMap("stays", "3"), leaves)
	shut.open()
	w.eventuallyHolds("in the end")
	if after := w.uid(leaves); after != before {
		t.Errorf("the wanted object had the UID %s, and has %q now", before, after)
	}
}

// TestSuccessorOfTheSameName removes the finalizer of a ManagedResource in deletion by hand, and creates another
// one with the same name. The watch of ManagedResources does not show it. Its objects must be retained.
func TestSuccessorOfTheSameName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := movable{by: &atomic.Int64{}}
	source, shut, _ := w.startBehindGate(func(r *inprocess.ResourceManager) { r.Clock = now })
	// The Service is deleted first, and a finalizer keeps it.
	objects := []string{later(service("held", 1)), configMap("one", "1")}
	w.declare("set", objects...)
	w.eventuallyHolds("at first")
	w.patch(objects[0], `{"metadata":{"finalizers":["example.org/held"]}}`)
	before := w.uid(objects[1])
	kit.Must(t, w.client.Delete(t.Context(), w.managedResource("set")))
	kit.Eventually(t, "the deletion of the Service has started", func() string {
		if obj := w.live(objects[0]); obj == nil || obj.GetDeletionTimestamp() != nil {
			return ""
		}
		return "the Service is not being deleted"
	})
	w.eventuallyApplied("set", progressing, resourcesv1alpha1.ReasonDeletionPending, "held")
	shut.closeBefore(`"type":"DELETED"`)
	old := w.read("set").UID
	kit.Must(t, w.change("set", withoutFinalizers))
	kit.EventuallyTrue(t, "the ManagedResource is deleted", func() bool { return w.gone("set", old) })
	w.refer("set", "set")
	now.by.Store(int64(16 * time.Second)) // within the first seconds it assumes that this did not happen
	w.patch(objects[0], `{"metadata":{"finalizers":null}}`)
	reads := readsOf(source, "managedresources/set")
	kit.Eventually(t, "the resource-manager reads from the API server before further deletions", func() string { return atLeast(reads+2, readsOf(source, "managedresources/set")) })
	if after := w.uid(objects[1]); after != before {
		t.Errorf("the ConfigMap had the UID %s, and has %q now", before, after)
	}
	shut.open()
	w.eventuallyHolds("in the end")
	if after := w.uid(objects[1]); after != before {
		t.Errorf("the ConfigMap had the UID %s, and has %q now", before, after)
	}
}

// TestHealth_StaleView makes an object unhealthy and healthy again while the watch of ManagedResources does not
// show that the first change was recorded. The recorded status then seems to be current.
func TestHealth_StaleView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, shut, seen := w.startBehindGate()
	manifest := strings.Replace(service("balanced", 1), "clusterIP: None", "type: LoadBalancer", 1)
	balanced := w.parse(manifest)
	w.declare("set", manifest)
	serves := func(addresses string) {
		kit.Must(t, w.client.SubResource("status").Patch(t.Context(), balanced.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"status":{"loadBalancer":{"ingress":`+addresses+`}}}`))))
	}
	const one, none = `[{"ip":"192.0.2.1"}]`, `null`
	w.eventuallyApplied("set", isTrue, resourcesv1alpha1.ReasonApplySucceeded)
	serves(one)
	w.eventuallySays("set", resourcesv1alpha1.ResourcesHealthy, isTrue)
	seen.eventuallyHasSeen(w, "set")

	shut.closeBefore(`"status":"False","type":"ResourcesHealthy"`)
	serves(none)
	w.eventuallySays("set", resourcesv1alpha1.ResourcesHealthy, isFalse)
	serves(one)
	time.Sleep(time.Second) // time for a reconciliation with the stale view
	if condition := resourcesv1alpha1.ConditionOf(w.read("set").Status.Conditions, resourcesv1alpha1.ResourcesHealthy); condition.Status != isFalse {
		t.Errorf("the view is not stale: %+v", condition)
	}
	shut.open()
	w.eventuallySays("set", resourcesv1alpha1.ResourcesHealthy, isTrue)
}
