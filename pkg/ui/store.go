package ui

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// mostGone is how many ManagedResources that are gone are remembered, for pages that are behind. A page that is further behind gets
// everything again.
const mostGone = 1000

// store keeps records of ManagedResources for all pages, and what has changed lately.
type store struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	records map[types.NamespacedName]*record
	// sequence counts changes.
	sequence uint64
	gone     []departure
	// forgotten is the sequence of the last departure that is not remembered any more.
	forgotten uint64
	history   history
	// loaded says that all were read once, read how many have been until then.
	loaded bool
	read   int
	// lost is why the cluster cannot be reached, and since when; nil if it can be.
	lost      error
	lostSince time.Time
	// changed is closed with the next change.
	changed chan struct{}
}

type departure struct {
	name     types.NamespacedName
	sequence uint64
}

func newStore(clock clock.PassiveClock) *store {
	return &store{clock: clock, records: map[types.NamespacedName]*record{}, changed: make(chan struct{})}
}

// News contains the changes that a page has not seen yet.
type News struct {
	// Sequence is what the page is to ask from the next time.
	Sequence uint64 `json:"sequence"`
	// Reset says that rows are all that there are.
	Reset bool                   `json:"reset,omitempty"`
	Rows  []Row                  `json:"rows,omitempty"`
	Gone  []types.NamespacedName `json:"gone,omitempty"`
	// Loaded says that all were read once, Read how many have been until then.
	Loaded bool `json:"loaded"`
	Read   int  `json:"read,omitempty"`
	// Lost says why the cluster cannot be reached, LostSince since when.
	Lost      string `json:"lost,omitempty"`
	LostSince int64  `json:"lostSince,omitempty"`
	// Notice says what is not shown, and why.
	Notice string `json:"notice,omitempty"`
	Now    int64  `json:"now"`
}

// since returns what changed after a sequence, 0 for all, in namespaces, and what is closed when there is more.
func (s *store) since(sequence uint64, in Namespaces, explain func(error) string) (News, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := News{
		Sequence: s.sequence, Reset: sequence == 0 || sequence < s.forgotten || sequence > s.sequence, Loaded: s.loaded, Now: seconds(s.clock.Now()),
	}
	if !s.loaded {
		news.Read = s.read
	}
	if s.lost != nil {
		news.Lost, news.LostSince = explain(s.lost), seconds(s.lostSince)
	}
	for _, record := range s.records {
		if in.Include(record.Namespace) && (news.Reset || record.sequence > sequence) {
			news.Rows = append(news.Rows, record.row)
		}
	}
	if !news.Reset {
		for _, departure := range s.gone {
			if in.Include(departure.name.Namespace) && departure.sequence > sequence && s.records[departure.name] == nil {
				news.Gone = append(news.Gone, departure.name)
			}
		}
	}
	return news, s.changed
}

// historyOf returns what changed about a ManagedResource, the latest first.
func (s *store) historyOf(name types.NamespacedName) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.of(name)
}

// inventoryOf returns the inventory of a ManagedResource; nothing if it is not known.
func (s *store) inventoryOf(name types.NamespacedName) []entry {
	s.mu.Lock()
	known := s.records[name]
	s.mu.Unlock()
	switch {
	case known == nil:
		return nil
	case known.cached != nil:
		return entriesOf(known.cached)
	}
	return known.entries
}

// versionOf returns the version in which a ManagedResource is known; empty if it is not.
func (s *store) versionOf(name types.NamespacedName) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.records[name]; known != nil {
		return known.ResourceVersion
	}
	return ""
}

// change records a change, and wakes those that wait.
func (s *store) change(note func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	note()
	close(s.changed)
	s.changed = make(chan struct{})
}

// OnSynced records that the cluster answers.
func (s *store) OnSynced() {
	s.change(func() { s.lost, s.read = nil, 0 })
}

// OnProgress records how many more were read.
func (s *store) OnProgress(count int) {
	s.change(func() { s.read += count })
}

// OnError records that a request failed.
func (s *store) OnError(err error) {
	s.change(func() {
		if s.lost == nil {
			s.lostSince = s.clock.Now()
		}
		s.lost = err
	})
}

// Add stores a record. It implements cache.ReflectorStore, as do the methods below.
func (s *store) Add(object any) error { return s.take(object) }

// Update takes in a record that has changed.
func (s *store) Update(object any) error { return s.take(object) }

func (s *store) take(object any) error {
	taken, is := object.(*record)
	if !is {
		return fmt.Errorf("watch ManagedResources: received a %T", object)
	}
	s.change(func() { s.put(taken) })
	return nil
}

// put takes in a record with the present sequence.
func (s *store) put(taken *record) {
	before := s.records[taken.FullName()]
	if before != nil && before.ResourceVersion == taken.ResourceVersion {
		return
	}
	if s.loaded {
		s.history.add(differences(before, taken, s.clock.Now()))
	}
	taken.sequence = s.sequence
	s.records[taken.FullName()] = taken
}

// Delete takes in that a record is gone.
func (s *store) Delete(object any) error {
	taken, is := object.(*record)
	if !is {
		return fmt.Errorf("watch ManagedResources: received a %T", object)
	}
	s.change(func() { s.remove(taken.FullName()) })
	return nil
}

func (s *store) remove(name types.NamespacedName) {
	before := s.records[name]
	if before == nil {
		return
	}
	s.history.add(differences(before, nil, s.clock.Now()))
	delete(s.records, name)
	s.gone = append(s.gone, departure{name, s.sequence})
	if len(s.gone) > mostGone {
		s.forgotten = s.gone[0].sequence
		s.gone = slices.Delete(s.gone, 0, 1)
	}
}

// Replace takes in all that there are.
func (s *store) Replace(objects []any, _ string) error {
	s.change(func() {
		there := make(map[types.NamespacedName]bool, len(objects))
		for _, object := range objects {
			if taken, is := object.(*record); is {
				there[taken.FullName()] = true
				s.put(taken)
			}
		}
		for name := range s.records {
			if !there[name] {
				s.remove(name)
			}
		}
		s.loaded = true
	})
	return nil
}

// Resync does nothing: no caller needs it.
func (s *store) Resync() error { return nil }
