package ownership

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// replacedKept limits the number of outdated resourceVersions of a ManagedResource. It is larger than the number of
	// writes of a pass.
	replacedKept = 8
	// cacheLag is how long after a write a cache is assumed to be outdated.
	cacheLag = time.Minute
)

// StaleReads stores the resourceVersions that this process has replaced, so that a ManagedResource is not reconciled in
// an outdated state that a cache still contains. It also stores those that it may have replaced, because the result of
// a write is unknown. It is safe for concurrent use.
type StaleReads struct {
	clock    clock.PassiveClock
	mu       sync.Mutex
	replaced map[types.NamespacedName]replaced
	// uncertain are the resourceVersions that may have been replaced.
	uncertain map[types.NamespacedName]string
}

// replaced are resourceVersions that were replaced, and the time of the last replacement.
type replaced struct {
	versions []string
	last     time.Time
}

// NewStaleReads returns an empty store.
func NewStaleReads(clk clock.PassiveClock) *StaleReads {
	return &StaleReads{clock: clk, replaced: map[types.NamespacedName]replaced{}, uncertain: map[types.NamespacedName]string{}}
}

// Add records that a resourceVersion was replaced.
func (s *StaleReads) Add(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := slices.Concat(s.replaced[name].versions, []string{resourceVersion})
	s.replaced[name] = replaced{versions[max(0, len(versions)-replacedKept):], s.clock.Now()}
}

// Has reports whether a resourceVersion was replaced. If the cache still contains it after cacheLag, this becomes
// uncertain: etcd may have been restored from a backup with this version.
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
	s.uncertain[name] = resourceVersion
	return false
}

// MarkUncertain records that a resourceVersion may have been replaced.
func (s *StaleReads) MarkUncertain(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncertain[name] = resourceVersion
}

// Uncertain reports whether the result of the last write to a ManagedResource is unknown.
func (s *StaleReads) Uncertain(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, uncertain := s.uncertain[name]
	return uncertain
}

// Resolve records the current resourceVersion, which ends the uncertainty.
func (s *StaleReads) Resolve(name types.NamespacedName, current string) {
	s.mu.Lock()
	version, uncertain := s.uncertain[name]
	delete(s.uncertain, name)
	s.mu.Unlock()
	if uncertain && version != current {
		s.Add(name, version)
	}
}

// Forget deletes the entries of a ManagedResource that no longer exists.
func (s *StaleReads) Forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replaced, name)
	delete(s.uncertain, name)
}
