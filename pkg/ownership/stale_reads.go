package ownership

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// replacedKept is how many outdated resourceVersions of a ManagedResource are remembered: more than one pass writes.
	replacedKept = 8
	// cacheLag is how long after a write a cache is taken to be behind it.
	cacheLag = time.Minute
)

// StaleReads remembers the resourceVersions that this process has replaced, so that a ManagedResource which a cache still
// shows in such a state is not worked on. It also remembers those that it may have replaced, since it does not know what became of its
// write. It is safe for concurrent use.
type StaleReads struct {
	clock    clock.PassiveClock
	mu       sync.Mutex
	replaced map[types.NamespacedName]replaced
	doubted  map[types.NamespacedName]string
}

// replaced are resourceVersions that were replaced, the last of them at a time.
type replaced struct {
	versions []string
	last     time.Time
}

// NewStaleReads returns an empty memory.
func NewStaleReads(clk clock.PassiveClock) *StaleReads {
	return &StaleReads{clock: clk, replaced: map[types.NamespacedName]replaced{}, doubted: map[types.NamespacedName]string{}}
}

// Add notes that a resourceVersion was replaced.
func (s *StaleReads) Add(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := slices.Concat(s.replaced[name].versions, []string{resourceVersion})
	s.replaced[name] = replaced{versions[max(0, len(versions)-replacedKept):], s.clock.Now()}
}

// Has reports whether a resourceVersion was replaced. If the cache should have shown that long ago, it is in doubt: etcd may have been
// restored from a backup that has it.
func (s *StaleReads) Has(name types.NamespacedName, resourceVersion string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.replaced[name]
	if !slices.Contains(known.versions, resourceVersion) {
		return false
	}
	if s.clock.Since(known.last) < cacheLag {
		return true
	}
	delete(s.replaced, name)
	s.doubted[name] = resourceVersion
	return false
}

// Doubt notes that a resourceVersion may have been replaced.
func (s *StaleReads) Doubt(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted[name] = resourceVersion
}

// Doubts reports whether it is not known whether the last write to a ManagedResource was carried out.
func (s *StaleReads) Doubts(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, doubted := s.doubted[name]
	return doubted
}

// Settle ends the doubt: it is known now which resourceVersion is the present one.
func (s *StaleReads) Settle(name types.NamespacedName, present string) {
	s.mu.Lock()
	doubted, was := s.doubted[name]
	delete(s.doubted, name)
	s.mu.Unlock()
	if was && doubted != present {
		s.Add(name, doubted)
	}
}

// Forget drops what is remembered of a ManagedResource that is gone.
func (s *StaleReads) Forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replaced, name)
	delete(s.doubted, name)
}
