package shoot

import (
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byHand deletes ManagedResources by hand: the one with a name, or all if the name is empty. The resource-managers notice it
// before the flow does.
func (s *simulation) byHand(name string) {
	s.Helper()
	for _, mr := range s.store.all() {
		if name == "" || mr.Name == name {
			if err := client.IgnoreNotFound(s.store.Delete(s.Context(), mr)); err != nil {
				s.Fatal(err)
			}
		}
	}
	s.manage()
}

// names returns the names of all ManagedResources, and an empty one for all of them at once.
func (s *simulation) names() []string {
	names := []string{""}
	for _, mr := range s.store.all() {
		names = append(names, mr.Name)
	}
	return names
}

// protected are the bundles whose objects cannot be replaced, or are needed to delete others.
func protected(name string) bool {
	return slices.Contains([]string{"shoot--dev--one", bundleEtcdMain, bundleEtcdEvents, bundleAPIServer}, name)
}

// TestDeletedByHand deletes each ManagedResource by hand, and all at once, of Shoots that are awake or hibernate. All come
// back, and no data is lost. The Shoot can still be deleted, also in the moment of the deletion by hand.
func TestDeletedByHand(t *testing.T) {
	awake := newSimulation(t, known(t, withExtensions("after-before", "before-after")))
	awake.settle()
	for _, story := range []story{{name: "awake"}, {name: "asleep", asleep: true}, {name: "awake, then forced", forced: true}} {
		lived := awake.live(t, story)
		for _, name := range lived.names() {
			t.Run(fmt.Sprintf("%s, %q", story.name, name), func(t *testing.T) {
				s := lived.copied(t)
				s.byHand(name)
				atOnce := s.copied(t)
				s.settle()
				for _, bundle := range planOf(t, s.in).Bundles {
					mr := s.store.mrs[client.ObjectKey(bundle.Key)]
					if mr == nil || mr.DeletionTimestamp != nil || s.waits[bundle.Name] != "" {
						t.Errorf("%s is not back: %s", bundle.Name, s.waits[bundle.Name])
					}
				}
				if lost := slices.IndexFunc(s.gone, protected); lost >= 0 {
					t.Errorf("the objects of %s were deleted", s.gone[lost])
				}
				if t.Failed() {
					s.explain()
				}
				s.delete(story)
				atOnce.delete(story)
			})
		}
	}
}

// TestDeletedByHandDuringDeletion deletes each ManagedResource by hand, and all at once, at each step of the deletion of a
// Shoot. The deletion ends, and its order is kept.
func TestDeletedByHandDuringDeletion(t *testing.T) {
	awake := newSimulation(t, known(t, withExtensions("after-before", "before-after")))
	awake.settle()
	for _, story := range []story{{name: "awake"}, {name: "asleep", asleep: true}, {name: "forced", forced: true}} {
		s := awake.live(t, story)
		s.in.Deleting, s.in.Shoot.DeletionTimestamp = true, &metav1.Time{Time: now}
		if story.forced {
			forced(&s.in)
		}
		cleaned(&s.in)
		for step := 0; len(s.store.mrs) > 0; step++ {
			for _, name := range s.names() {
				t.Run(fmt.Sprintf("%s, after %d passes, %q", story.name, step, name), func(t *testing.T) {
					copied := s.copied(t)
					copied.byHand(name)
					copied.delete(story)
				})
			}
			s.pass()
		}
	}
}
