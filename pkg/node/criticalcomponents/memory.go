package criticalcomponents

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// repeatAfter is when an Event is written again although it says nothing new. Kubernetes keeps Events for an hour, so that people
// always find one.
const repeatAfter = 30 * time.Minute

// memories hold what is remembered of the nodes that wait, by name. They are lost with the process, which costs an Event for each
// node that waits.
type memories struct {
	mu    sync.Mutex
	nodes map[string]*memory
}

// memory is what is remembered of a node.
type memory struct {
	uid      types.UID
	since    time.Time
	reported map[string]word
}

// word is an Event that was written.
type word struct {
	message string
	at      time.Time
}

// waits remembers that a node waits, and returns whether to report what is missing: immediately if the reason differs from
// the last one; a new message of the same reason only after a pause, because many Pods become ready one
// after the other; and the same message only after half an hour.
func (m *memories) waits(name string, uid types.UID, missing Missing, now time.Time, pause time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes == nil {
		m.nodes = map[string]*memory{}
	}
	node := m.nodes[name]
	if node == nil || node.uid != uid {
		node = &memory{uid: uid, since: now, reported: map[string]word{}}
		m.nodes[name] = node
	}
	message := missing.Message()
	last, reported := node.reported[missing.Reason()]
	if reported {
		if last.message == message {
			pause = repeatAfter
		}
		if now.Sub(last.at) < pause {
			return false
		}
	}
	node.reported[missing.Reason()] = word{message: message, at: now}
	return true
}

// forgetReason forgets that a reason was reported for a node, because the Event could not be created.
func (m *memories) forgetReason(name, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if node := m.nodes[name]; node != nil {
		delete(node.reported, reason)
	}
}

// forget drops what is remembered of a node. It returns since when the node waited, and whether it did.
func (m *memories) forget(name string) (since time.Time, waited bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, waited := m.nodes[name]
	if !waited {
		return time.Time{}, false
	}
	delete(m.nodes, name)
	return node.since, true
}

// count returns how many nodes wait.
func (m *memories) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.nodes)
}
