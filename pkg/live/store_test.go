package live

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// A recorder of the names that a store passes to its listeners.
type told struct {
	mu    sync.Mutex
	names []string
}

func (t *told) add(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names = append(t.names, name.String())
}

// take returns the names that were added since the last call, sorted.
func (t *told) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := slices.Sorted(slices.Values(t.names))
	t.names = nil
	return names
}

func newTestStore() (*store, *told) {
	told := &told{}
	return &store{
		clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), changed: told.add,
		objects: held{}, shown: map[string]string{}, healthChanged: func(string) {},
	}, told
}

func metaOf(namespace, name, version, origin string) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.Namespace, meta.Name, meta.ResourceVersion, meta.UID = namespace, name, version, types.UID(namespace+name)
	meta.Annotations = map[string]string{"resources.gardener.cloud/origin": origin}
	return meta
}

func wantTold(t *testing.T, told *told, what string, want ...string) {
	t.Helper()
	if got := told.take(); !slices.Equal(got, want) {
		t.Errorf("%s: notified about %v, want %v", what, got, want)
	}
}

func wantHeld(t *testing.T, s *store, name, version string) {
	t.Helper()
	held := ""
	if observation := s.objects.get(types.NamespacedName{Namespace: "ns", Name: name}); observation != nil {
		held = observation.ResourceVersion
	}
	if held != version {
		t.Errorf("%s: the store has version %q, want %q", name, held, version)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoreKeepsTheYoungest checks that the record of a write is kept when the watch later shows an older state.
func TestStoreKeepsTheYoungest(t *testing.T) {
	s, told := newTestStore()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	must(t, s.Add(metaOf("ns", "a", "9", "x")))
	wantTold(t, told, "a new object", "ns/a")
	must(t, s.Update(metaOf("ns", "a", "10", "x")))
	wantTold(t, told, "an irrelevant change")
	wantHeld(t, s, "a", "10")
	must(t, s.Update(metaOf("ns", "a", "11", "y")))
	wantTold(t, told, "a change", "ns/a")

	s.recordWrite(key, &Observation{ResourceVersion: "20", UID: "nsa", Origin: "y", Examined: true})
	must(t, s.Update(metaOf("ns", "a", "15", "stranger")))
	must(t, s.Update(metaOf("ns", "a", "20", "y")))
	must(t, s.Delete(metaOf("ns", "a", "15", "y"))) // it lost its label, and the write restored the label
	wantTold(t, told, "outdated events")
	wantHeld(t, s, "a", "20")
	must(t, s.Delete(metaOf("ns", "a", "21", "y")))
	wantTold(t, told, "a deletion", "ns/a")
	wantHeld(t, s, "a", "")
	must(t, s.Delete(metaOf("ns", "a", "22", "y")))
	wantTold(t, told, "a deletion of an unknown object")

	must(t, s.Add(metaOf("ns", "a", "30", "y")))
	s.drop(key, "another")
	wantHeld(t, s, "a", "30")
	s.drop(key, "nsa")
	wantHeld(t, s, "a", "")
	if err := s.Add("text"); err == nil {
		t.Error("a string is accepted as an object")
	}
}

// TestLateAnswers checks responses to writes that arrive after the watch has shown a later state of the object.
func TestLateAnswers(t *testing.T) {
	s, told := newTestStore()
	answered := func(name, version string) {
		observation := Observe(metaOf("ns", name, version, "x"), s.observer.policy)
		s.notify(types.NamespacedName{Namespace: "ns", Name: name}, s.recordWrite(types.NamespacedName{Namespace: "ns", Name: name}, &observation))
	}
	answered("early", "5")
	wantHeld(t, s, "early", "5") // nothing has been listed yet, and the list will correct it
	must(t, (&part{store: s, synced: func() {}, failed: func(error) {}}).Replace([]any{metaOf("ns", "a", "8", "x")}, "10"))
	told.take()

	answered("a", "7")
	wantHeld(t, s, "a", "8")
	answered("deleted", "9")
	wantHeld(t, s, "deleted", "") // if it existed, it would be in the list
	must(t, s.Add(metaOf("ns", "b", "11", "x")))
	must(t, s.Delete(metaOf("ns", "b", "12", "x")))
	wantTold(t, told, "the events of the watch", "ns/b", "ns/b")
	answered("b", "11")
	wantHeld(t, s, "b", "")
	answered("b", "13")
	wantHeld(t, s, "b", "13") // created again
	must(t, s.Delete(metaOf("ns", "b", "14", "x")))
	wantTold(t, told, "a deletion", "ns/b", "ns/b")
	must(t, s.Update(metaOf("ns", "a", "20", "x")))
	answered("c", "19")
	wantHeld(t, s, "c", "") // deleted between two events, or the event is still to come
	answered("c", "not to be compared")
	answered("a", "not to be compared")
	wantHeld(t, s, "c", "")
	wantHeld(t, s, "a", "20")

	s.perNamespace = true // each namespace has its own watch, whose version says nothing about the others
	must(t, s.Add(metaOf("other", "a", "40", "x")))
	answered("c", "30")
	wantHeld(t, s, "c", "30")
}

// TestStoreReplace checks that a list replaces everything that was recorded before, within its namespace.
func TestStoreReplace(t *testing.T) {
	s, told := newTestStore()
	synced := 0
	here := &part{store: s, namespace: "ns", synced: func() { synced++ }, failed: func(error) {}}
	must(t, s.Add(metaOf("ns", "same", "5", "x")))
	must(t, s.Add(metaOf("ns", "changed", "5", "x")))
	must(t, s.Add(metaOf("ns", "gone", "5", "x")))
	must(t, s.Add(metaOf("other", "kept", "5", "x")))
	told.take()
	must(t, here.Replace([]any{
		metaOf("ns", "same", "7", "x"), metaOf("ns", "changed", "3", "y"), metaOf("ns", "new", "7", "x"),
	}, "8"))
	wantTold(t, told, "a list", "ns/changed", "ns/gone", "ns/new")
	wantHeld(t, s, "same", "7")
	wantHeld(t, s, "changed", "3")
	wantHeld(t, s, "gone", "")
	if !s.has(types.NamespacedName{Namespace: "other", Name: "kept"}) {
		t.Error("the list of a namespace removes objects of another one")
	}
	if synced != 1 || s.size() != 4 {
		t.Errorf("synced %d times, %d objects", synced, s.size())
	}
	everywhere := &part{store: s, synced: func() { synced++ }, failed: func(error) {}}
	must(t, everywhere.Replace(nil, "9"))
	if synced != 2 || s.size() != 0 {
		t.Errorf("after an empty list: synced %d times, %d objects", synced, s.size())
	}
	if everywhere.Replace([]any{"text"}, "10") == nil || synced != 2 {
		t.Error("a list of strings is accepted")
	}
}

// TestStoreConcurrently runs a watch, lists, recorded writes and readers concurrently on one store, for the race detector. In
// the end the store must have the latest version of each object.
func TestStoreConcurrently(t *testing.T) {
	const objects, versions = 20, 200
	s, _ := newTestStore()
	var group sync.WaitGroup
	each := func(do func(name, version string) error) {
		group.Go(func() {
			for version := 1; version <= versions; version++ {
				for i := range objects {
					if err := do(fmt.Sprintf("o%d", i), strconv.Itoa(version)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	each(func(name, version string) error { return s.Add(metaOf("ns", name, version, version)) })
	each(func(name, version string) error { return s.Update(metaOf("ns", name, version, version)) })
	each(func(name, version string) error {
		observation := Observe(metaOf("ns", name, version, version), s.observer.policy)
		s.recordWrite(types.NamespacedName{Namespace: "ns", Name: name}, &observation)
		return nil
	})
	each(func(name, _ string) error {
		key := types.NamespacedName{Namespace: "ns", Name: name}
		if held, found := s.get(key); found && held.Origin != held.ResourceVersion {
			return fmt.Errorf("a partial observation is stored: %+v", held)
		}
		s.drop(key, "another")
		s.size()
		return nil
	})
	elsewhere := &part{store: s, namespace: "other", synced: func() {}, failed: func(error) {}}
	each(func(name, version string) error {
		return elsewhere.Replace([]any{metaOf("other", name, version, version)}, version)
	})
	group.Wait()
	for i := range objects {
		wantHeld(t, s, fmt.Sprintf("o%d", i), strconv.Itoa(versions))
	}
	if s.size() != objects+1 {
		t.Errorf("the store has %d objects, want these and the one of the last list", s.size())
	}
}

// TestStoreDeletesOpaqueVersions checks the handling of resourceVersions that are not comparable, as an aggregated API may
// have. A watch shows changes in order, so a DELETE event always refers to the stored object.
func TestStoreDeletesOpaqueVersions(t *testing.T) {
	s, told := newTestStore()
	must(t, s.Add(metaOf("ns", "a", "opaque-x", "x")))
	wantTold(t, told, "a new object", "ns/a")
	must(t, s.Delete(metaOf("ns", "a", "opaque-b", "x")))
	wantTold(t, told, "a deletion", "ns/a")
	wantHeld(t, s, "a", "")

	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	must(t, s.Add(metaOf("ns", "a", "opaque-c", "x")))
	s.recordWrite(key, &Observation{ResourceVersion: "opaque-a", UID: "nsa", Origin: "x", Examined: true})
	must(t, s.Delete(metaOf("ns", "a", "opaque-d", "x")))
	wantHeld(t, s, "a", "")
}
