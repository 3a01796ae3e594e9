package trouble

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// storm simulates users of many ManagedResources who never wait for one another or for the resource-manager.
type storm struct {
	*world
	random *rand.Rand
	sets   int
	// size is the number of objects of a ManagedResource.
	size int
	// out are the objects that the manifests of a set currently lack. Revisions counts the changes of its manifests.
	out       []map[int]bool
	revisions []int
	// anchors are the UIDs of the objects that no user deletes or removes from the manifests.
	anchors map[string]string
	// disturbed are the times at which each object was disturbed. The resource-manager stops correcting an object for
	// a while if it is disturbed too often, see "contested" in docs/architecture.md.
	disturbed map[string][]time.Time
	// done counts the changes by kind.
	done map[string]int
	// timeout is how long the storm waits until the declared state is established.
	timeout time.Duration
}

func (w *world) newStorm(seed uint64, sets, size int) *storm {
	s := &storm{
		world: w, random: rand.New(rand.NewPCG(seed, 1)), sets: sets, size: size, revisions: make([]int, sets),
		anchors: map[string]string{}, disturbed: map[string][]time.Time{}, done: map[string]int{}, timeout: kit.WaitTimeout,
	}
	for range sets {
		s.out = append(s.out, map[int]bool{})
	}
	return s
}

func (s *storm) set(i int) string { return fmt.Sprintf("set-%d", i) }

// object returns the manifest of an object. The first one of a set is its anchor.
func (s *storm) object(i, j int) string {
	name := fmt.Sprintf("set-%d-%d", i, j)
	switch revision := s.revisions[i]; j % 10 {
	case 8:
		return service(name, 8000+revision%1000)
	case 9:
		return role(name, revision)
	default:
		return configMap(name, fmt.Sprint(revision))
	}
}

func (s *storm) manifests(i int) []string {
	var manifests []string
	for j := range s.size {
		if !s.out[i][j] {
			manifests = append(manifests, s.object(i, j))
		}
	}
	return manifests
}

// begin declares all sets and waits until they are established.
func (s *storm) begin() {
	s.Helper()
	each(s.sets, func(i int) { s.declare(s.set(i), s.manifests(i)...) })
	kit.EventuallyWithin(s, s.timeout, "at first, the declared state is established", s.objectionsAtMost(10))
	_, kinds, _ := s.wanted()
	ours, err := s.ours(kinds)
	kit.Must(s, err)
	for i := range s.sets {
		anchor := s.parse(s.object(i, 0))
		s.anchors[anchor.GetName()] = string(ours[keyOf(anchor)].GetUID())
	}
}

// each calls a function for 0…count-1, a few at a time.
func each(count int, do func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range count {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}

// step makes one of the changes that users make: they change manifests, remove objects and add them again, change
// and delete live objects, and annotate ManagedResources.
func (s *storm) step() {
	s.Helper()
	i := s.random.IntN(s.sets)
	inner := 1 + s.random.IntN(s.size-1) // not the anchor
	var what string
	switch s.random.IntN(6) {
	case 0, 1:
		what = "update"
		s.revisions[i]++
		s.declare(s.set(i), s.manifests(i)...)
	case 2:
		what = "take out or put in"
		if s.out[i][inner] = !s.out[i][inner]; !s.out[i][inner] {
			delete(s.out[i], inner)
		}
		s.declare(s.set(i), s.manifests(i)...)
	case 3:
		what = "drift"
		if s.mayDisturb(i, 0) {
			s.patch(s.object(i, 0), `{"data":{"key":"by hand","more":"by hand"}}`)
		}
	case 4:
		what = "delete"
		if s.mayDisturb(i, inner) {
			s.delete(s.object(i, inner))
		}
	case 5:
		what = "out and in"
		before := maps.Clone(s.out[i])
		s.out[i][inner] = true
		s.declare(s.set(i), s.manifests(i)...)
		s.out[i] = before
		s.declare(s.set(i), s.manifests(i)...)
	}
	s.done[what]++
}

// mayDisturb reports whether an object was not disturbed too often recently. If so, it records a disturbance now.
func (s *storm) mayDisturb(i, j int) bool {
	const most, within = 4, 10 * time.Minute
	name := fmt.Sprintf("%d-%d", i, j)
	recent := slices.DeleteFunc(s.disturbed[name], func(at time.Time) bool { return time.Since(at) > within })
	may := len(recent) < most
	if may {
		recent = append(recent, time.Now())
	}
	s.disturbed[name] = recent
	return may
}

// rage takes a number of steps, with a pause after each.
func (s *storm) rage(steps int, pause time.Duration) {
	s.Helper()
	for range steps {
		s.step()
		select {
		case <-time.After(pause):
		case <-s.Context().Done():
			return
		}
	}
}

// calm waits until the declared state is established, and checks that no anchor was deleted.
func (s *storm) calm() {
	s.Helper()
	kit.EventuallyWithin(s, s.timeout, "after the storm, the declared state is established", s.objectionsAtMost(10))
	for _, text := range s.lostAnchors() {
		s.Error(text)
	}
}

// lostAnchors returns the anchors that were replaced.
func (s *storm) lostAnchors() []string {
	s.Helper()
	_, kinds, _ := s.wanted()
	ours, err := s.ours(kinds)
	kit.Must(s, err)
	uids := map[string]string{}
	for _, obj := range ours {
		uids[obj.GetName()] = string(obj.GetUID())
	}
	var lost []string
	for name, uid := range s.anchors {
		if uids[name] != uid {
			lost = append(lost, fmt.Sprintf("%s had the UID %s and has %q now: it was deleted, although it was always wanted", name, uid, uids[name]))
		}
	}
	return lost
}
