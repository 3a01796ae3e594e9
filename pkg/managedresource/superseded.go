package managedresource

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// supersededKept is how many outdated resourceVersions of a ManagedResource are remembered: more than one pass writes.
const supersededKept = 8

// superseded remembers the resourceVersions that this process has replaced, so that a ManagedResource which a cache still
// shows in such a state is not worked on. It is safe for concurrent use.
type superseded struct {
	mu       sync.Mutex
	versions map[types.NamespacedName][]string
}

func newSuperseded() *superseded {
	return &superseded{versions: map[types.NamespacedName][]string{}}
}

// add notes that a resourceVersion was replaced.
func (s *superseded) add(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := slices.Concat(s.versions[name], []string{resourceVersion})
	s.versions[name] = versions[max(0, len(versions)-supersededKept):]
}

// has tells whether a resourceVersion was replaced.
func (s *superseded) has(name types.NamespacedName, resourceVersion string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.versions[name], resourceVersion)
}

// forget drops what is remembered of a ManagedResource that is gone.
func (s *superseded) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.versions, name)
}
