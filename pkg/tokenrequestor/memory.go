package tokenrequestor

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is the state of a source Secret that is kept between reconciles. It contains no bytes of Secrets.
type memory struct {
	// version is the resourceVersion of the Secret after the last successful reconcile. next is the time of the next
	// reconcile by the local clock.
	version string
	next    time.Time
	// expires is when its token expires, by the clock of the API server; zero if that is not known.
	expires time.Time
	// requested is when a token was last requested, by the local clock.
	requested time.Time
	// account is the ServiceAccount of the Secret. accountUID is its UID after the last reconcile; empty if it is not known.
	account    types.NamespacedName
	accountUID types.UID
	// recheck is set if the ServiceAccount has changed since the start of the last reconcile.
	recheck bool
	// seen is set after the first reconcile.
	seen bool
	// failing is set if the last reconcile failed. lastEvent is the last Event about that failure.
	failing   bool
	lastEvent string
	// held are the objects of the target cluster that the Secret referenced. They are cleaned up when it no longer does.
	held map[object]bool
}

// object is a ServiceAccount or Secret of the target cluster.
type object struct {
	kind string
	types.NamespacedName
}

// String returns "<kind> <namespace>/<name>".
func (o object) String() string { return o.kind + " " + o.NamespacedName.String() }

const (
	kindServiceAccount = "ServiceAccount"
	kindSecret         = "Secret"
)

// memories holds the memory of each source Secret.
type memories struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*memory
}

// update changes the memory of a source Secret, which it creates if necessary. It returns a copy without held objects.
func (m *memories) update(source types.NamespacedName, change func(*memory)) memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[types.NamespacedName]*memory{}
	}
	known := m.known[source]
	if known == nil {
		known = &memory{held: map[object]bool{}}
		m.known[source] = known
	}
	change(known)
	result := *known
	result.held = nil
	return result
}

// recheck makes the next reconcile of a source Secret check everything, even if the Secret is unchanged.
func (m *memories) recheck(source types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.known[source]; known != nil {
		known.version = ""
	}
}

// recheckAccount makes the next reconciles of the source Secrets of a ServiceAccount check everything unless it is the one that
// they know. uid is empty if it does not exist. It returns the Secrets.
func (m *memories) recheckAccount(account types.NamespacedName, uid types.UID) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sources []types.NamespacedName
	for source, known := range m.known {
		if known.account == account && (known.accountUID == "" || known.accountUID != uid) {
			known.recheck = true
			sources = append(sources, source)
		}
	}
	return sources
}

// heldBy returns the objects that a source Secret has referenced so far.
func (m *memories) heldBy(source types.NamespacedName) []object {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known[source]
	if known == nil {
		return nil
	}
	objects := make([]object, 0, len(known.held))
	for one := range known.held {
		objects = append(objects, one)
	}
	return objects
}

// forget drops the memory of a source Secret.
func (m *memories) forget(source types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, source)
}

// visit calls a function for each memory.
func (m *memories) visit(look func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.known {
		look(known)
	}
}
