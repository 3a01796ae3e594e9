package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// memory is what is remembered of one ManagedResource between two looks. One reconcile at a time uses it.
type memory struct {
	healthy, progressing health.Settling
	rollout              health.Rollout
	// found is what the last look found of the health of the objects, which the condition may report later.
	found resourcesv1alpha1.Statement
	// unobserved is since when there are objects whose controllers have not taken in their last change; zero if there are none.
	unobserved time.Time
	// explanations are those of the unhealthy objects.
	explanations map[objectName]explanation
	// rests is the resourceVersion of the ManagedResource at the last look, if nothing but an event can make another one find
	// anything else; empty if that is not so.
	rests string
	// warned is set if an Event reported that objects are unhealthy.
	warned bool
}

// objectName names an object within a ManagedResource.
type objectName struct{ group, kind, namespace, name string }

// observe returns what is found of the health of objects, given what was said of it before, and how soon that may change by
// itself; 0 for never. An object whose controller has not taken in its last change is passed over at first, and counts as it
// is if that takes too long.
func (m *memory) observe(before resourcesv1alpha1.Condition, subjects []health.Subject, now time.Time) (resourcesv1alpha1.Statement, time.Duration) {
	found, complete := health.Healthy(health.PendingIfUnobserved(subjects)), health.Healthy(subjects)
	if found == complete {
		m.unobserved = time.Time{}
		return found, 0
	}
	if m.unobserved.IsZero() {
		m.unobserved = now
		if complete == (resourcesv1alpha1.Statement{Status: before.Status, Reason: before.Reason, Message: before.Message}) {
			m.unobserved = before.LastTransitionTime.Time // it took too long before a restart already
		}
	}
	if left := m.unobserved.Add(unobservedFor).Sub(now); left > 0 {
		return found, left
	}
	return complete, 0
}

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

// pause drops the memory of a ManagedResource that is not checked for now, except for the conditions that were reported.
func (m *memories) pause(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.since, owner)
	if found, known := m.byOwner[owner]; known {
		*found = memory{warned: found.warned}
	}
}

// recordChange records that the health of an object of a ManagedResource changed.
func (m *memories) recordChange(owner types.NamespacedName, now time.Time) {
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

// unanswered takes back that an event was answered, as the answer could not be written.
func (m *memories) unanswered(owner types.NamespacedName, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if later, known := m.since[owner]; !since.IsZero() && (!known || since.Before(later)) {
		m.since[owner] = since
	}
}
