package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/health"
)

// memory is what is remembered of one ManagedResource between two looks. One reconcile at a time uses it.
type memory struct {
	healthy, progressing health.Settling
	// notes explain the unhealthy objects; looks counts how often they were read, the last time at looked.
	notes  map[objectName]string
	looks  int
	looked time.Time
	// warned is set if an Event told that objects are unhealthy.
	warned bool
}

// objectName names an object within a ManagedResource.
type objectName struct{ group, kind, namespace, name string }

// memories are those of all ManagedResources. They are safe for concurrent use.
type memories struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]*memory
	// since is when the first event came that has not been answered.
	since map[types.NamespacedName]time.Time
}

func newMemories() *memories {
	return &memories{byOwner: map[types.NamespacedName]*memory{}, since: map[types.NamespacedName]time.Time{}}
}

func (m *memories) of(owner types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, known := m.byOwner[owner]
	if !known {
		found = &memory{}
		m.byOwner[owner] = found
	}
	return found
}

func (m *memories) forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byOwner, owner)
	delete(m.since, owner)
}

// note takes in that an object of a ManagedResource is better or worse.
func (m *memories) note(owner types.NamespacedName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.since[owner]; !known {
		m.since[owner] = now
	}
}

// news returns when the first event came that is answered now; zero if none did.
func (m *memories) news(owner types.NamespacedName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := m.since[owner]
	delete(m.since, owner)
	return since
}
