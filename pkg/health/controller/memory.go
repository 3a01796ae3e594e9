package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// memory is the state of one ManagedResource that is kept between reconciles. Only one reconcile at a time uses it.
type memory struct {
	healthy, progressing health.Settling
	rollout              health.Rollout
	// found is the health of the objects at the last reconcile. The condition may report it later.
	found resourcesv1alpha1.Statement
	// unobserved is the time since which controllers have not observed the last change of their objects; zero if there are
	// no such objects.
	unobserved time.Time
	// explanations are those of the unhealthy objects.
	explanations map[objectName]explanation
	// rests is the resourceVersion of the ManagedResource at the last reconcile, if only an event can change its result;
	// empty otherwise.
	rests string
	// warned is set while the last Event reported unhealthy objects.
	warned bool
}

// objectName names an object within a ManagedResource.
type objectName struct{ group, kind, namespace, name string }

// observe returns the health of the objects, given the previous condition, and how soon it may change without an event;
// 0 for never. An object whose controller has not observed its last change counts as pending at first. After
// unobservedFor, its verdict counts.
func (m *memory) observe(
	before resourcesv1alpha1.Condition, subjects []health.Subject, now time.Time,
) (resourcesv1alpha1.Statement, time.Duration) {
	found, complete := health.Healthy(health.PendingIfUnobserved(subjects)), health.Healthy(subjects)
	if found == complete {
		m.unobserved = time.Time{}
		return found, 0
	}
	if m.unobserved.IsZero() {
		m.unobserved = now
		if complete == (resourcesv1alpha1.Statement{Status: before.Status, Reason: before.Reason, Message: before.Message}) {
			m.unobserved = before.LastTransitionTime.Time // it was already overdue before a restart
		}
	}
	if left := m.unobserved.Add(unobservedFor).Sub(now); left > 0 {
		return found, left
	}
	return complete, 0
}

// memories holds the memory of each ManagedResource. It is safe for concurrent use.
type memories struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]*memory
	// since is the time of the first change that the conditions do not report yet.
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

// pause resets the memory of a ManagedResource that is not checked for now. It keeps whether an Event reported
// unhealthy objects.
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

// takeChange returns the time of the first change since the last call; zero if there was none. The caller is about to
// report the change.
func (m *memories) takeChange(owner types.NamespacedName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := m.since[owner]
	delete(m.since, owner)
	return since
}

// restoreChange undoes a call of takeChange after the conditions could not be written.
func (m *memories) restoreChange(owner types.NamespacedName, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if later, known := m.since[owner]; !since.IsZero() && (!known || since.Before(later)) {
		m.since[owner] = since
	}
}
