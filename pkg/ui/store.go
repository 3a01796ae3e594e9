package ui

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// maxGone is the maximum number of deleted ManagedResources in memory, for pages that have not received the deletion
// yet. A page that
// lags further behind receives everything again.
const maxGone = 1000

// store keeps records of ManagedResources for all pages, and recent changes.
type store struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	records map[types.NamespacedName]*record
	// sequence counts changes.
	sequence uint64
	gone     []departure
	// forgotten is the sequence of the last removed departure.
	forgotten uint64
	history   history
	// loaded is set after all ManagedResources were read once. Until then, read is the number of those read so far.
	loaded bool
	read   int
	// lost is the error if the cluster is unreachable since lostSince. It is nil if the cluster is reachable.
	lost      error
	lostSince time.Time
	// changed is closed on the next change.
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
	// Sequence is the sequence from which the page continues.
	Sequence uint64 `json:"sequence"`
	// Reset is set if rows are all existing ManagedResources.
	Reset bool                   `json:"reset,omitempty"`
	Rows  []Row                  `json:"rows,omitempty"`
	Gone  []types.NamespacedName `json:"gone,omitempty"`
	// Loaded is set after all were read once. Until then, Read is the number of those read so far.
	Loaded bool `json:"loaded"`
	Read   int  `json:"read,omitempty"`
	// Lost is the error if the cluster is unreachable since LostSince.
	Lost      string `json:"lost,omitempty"`
	LostSince int64  `json:"lostSince,omitempty"`
	// Notice describes what is not shown, and why.
	Notice string `json:"notice,omitempty"`
	Now    int64  `json:"now"`
}

// since returns the changes in namespaces after a sequence, or everything for 0, and a channel that is closed on the
// next change.
func (s *store) since(sequence uint64, in Namespaces, explain func(error) string) (News, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := News{
		Sequence: s.sequence, Reset: sequence == 0 || sequence < s.forgotten || sequence > s.sequence, Loaded: s.loaded,
		Now: seconds(s.clock.Now()),
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

// historyOf returns the changes of a ManagedResource, the latest first.
func (s *store) historyOf(name types.NamespacedName) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.of(name)
}

// inventoryOf returns the inventory of a ManagedResource. It returns nil if the ManagedResource is unknown.
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

// versionOf returns the known resourceVersion of a ManagedResource. It is empty if the ManagedResource is unknown.
func (s *store) versionOf(name types.NamespacedName) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.records[name]; known != nil {
		return known.ResourceVersion
	}
	return ""
}

// change makes a change, and notifies waiting pages.
func (s *store) change(note func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	note()
	close(s.changed)
	s.changed = make(chan struct{})
}

// OnSynced records that the cluster is reachable.
func (s *store) OnSynced() {
	s.change(func() { s.lost, s.read = nil, 0 })
}

// OnProgress records that more ManagedResources were read.
func (s *store) OnProgress(count int) {
	s.change(func() { s.read += count })
}

// OnError records a failed request.
func (s *store) OnError(err error) {
	s.change(func() {
		if s.lost == nil {
			s.lostSince = s.clock.Now()
		}
		s.lost = err
	})
}

// Add stores a record. It implements cache.ReflectorStore, like the methods below.
func (s *store) Add(object any) error { return s.take(object) }

// Update stores a changed record.
func (s *store) Update(object any) error { return s.take(object) }

func (s *store) take(object any) error {
	taken, is := object.(*record)
	if !is {
		return fmt.Errorf("watch ManagedResources: received a %T", object)
	}
	s.change(func() { s.put(taken) })
	return nil
}

// put stores a record with the current sequence.
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

// Delete removes a record.
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
	if len(s.gone) > maxGone {
		s.forgotten = s.gone[0].sequence
		s.gone = slices.Delete(s.gone, 0, 1)
	}
}

// Replace replaces all records.
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

// Resync does nothing, because no caller needs it.
func (s *store) Resync() error { return nil }
