package managedresource

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// supersededKept is how many outdated resourceVersions of a ManagedResource are remembered: more than one pass writes.
const supersededKept = 8

// superseded remembers the resourceVersions that this process has replaced, so that a ManagedResource which a cache still
// shows in such a state is not worked on. It also remembers those that it may have replaced, since it does not know what became of its
// write. It is safe for concurrent use.
type superseded struct {
	mu       sync.Mutex
	versions map[types.NamespacedName][]string
	doubted  map[types.NamespacedName]string
}

func newSuperseded() *superseded {
	return &superseded{versions: map[types.NamespacedName][]string{}, doubted: map[types.NamespacedName]string{}}
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

// doubt notes that a resourceVersion may have been replaced.
func (s *superseded) doubt(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted[name] = resourceVersion
}

// doubts tells whether it is not known whether the last write to a ManagedResource was carried out.
func (s *superseded) doubts(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, doubted := s.doubted[name]
	return doubted
}

// settle ends the doubt: it is known now which resourceVersion is the present one.
func (s *superseded) settle(name types.NamespacedName, present string) {
	s.mu.Lock()
	doubted, was := s.doubted[name]
	delete(s.doubted, name)
	s.mu.Unlock()
	if was && doubted != present {
		s.add(name, doubted)
	}
}

// forget drops what is remembered of a ManagedResource that is gone.
func (s *superseded) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.versions, name)
	delete(s.doubted, name)
}
