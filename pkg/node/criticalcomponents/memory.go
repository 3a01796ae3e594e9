package criticalcomponents

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// repeatAfter is when an unchanged Event is written again. Kubernetes keeps Events for an hour, so there is always one.
const repeatAfter = 30 * time.Minute

// memories holds the state of waiting nodes, by name. After a restart, each waiting node gets another Event.
type memories struct {
	mu    sync.Mutex
	nodes map[string]*memory
}

// memory is the state of a waiting node.
type memory struct {
	uid      types.UID
	since    time.Time
	reported map[string]lastEvent
}

// lastEvent is an Event that was written.
type lastEvent struct {
	message string
	at      time.Time
}

// waits records that a node waits, and returns whether to report the missing components. A different reason is reported
// immediately. A different message with the same reason is reported after a pause, because many Pods become ready one
// after the other. The same message is reported again after half an hour.
func (m *memories) waits(name string, uid types.UID, missing Missing, now time.Time, pause time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes == nil {
		m.nodes = map[string]*memory{}
	}
	node := m.nodes[name]
	if node == nil || node.uid != uid {
		node = &memory{uid: uid, since: now, reported: map[string]lastEvent{}}
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
	node.reported[missing.Reason()] = lastEvent{message: message, at: now}
	return true
}

// forgetReason removes the record of an Event that could not be created.
func (m *memories) forgetReason(name, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if node := m.nodes[name]; node != nil {
		delete(node.reported, reason)
	}
}

// forget removes the state of a node. It returns the time since which the node waited, and whether it did.
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

// count returns the number of waiting nodes.
func (m *memories) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.nodes)
}
