package live

import "sync"

// healthNews passes on whose objects are better or worse than before. It is safe for concurrent use.
type healthNews struct {
	mu       sync.Mutex
	listener func(origin string)
	// suspended are the origins of which nothing is passed on at the moment, and whether there was something.
	suspended map[string]bool
}

// ListenHealth sets who is told, without delay and in no order, the origins of objects about whose health another thing is
// to be said than before. The listener must not block.
func (v *View) ListenHealth(listener func(origin string)) {
	v.health.mu.Lock()
	defer v.health.mu.Unlock()
	v.health.listener = listener
}

// SuspendHealth holds back the news of an origin's objects until the returned function is called: while they are being
// changed, what is to be said of them changes with every one.
func (v *View) SuspendHealth(origin string) (resume func()) {
	v.health.mu.Lock()
	defer v.health.mu.Unlock()
	v.health.suspended[origin] = false
	return func() { v.health.resume(origin) }
}

// HealthSuspended reports whether an origin's objects are being changed.
func (v *View) HealthSuspended(origin string) bool {
	v.health.mu.Lock()
	defer v.health.mu.Unlock()
	_, suspended := v.health.suspended[origin]
	return suspended
}

func (n *healthNews) resume(origin string) {
	n.mu.Lock()
	news := n.suspended[origin]
	delete(n.suspended, origin)
	n.mu.Unlock()
	if news {
		n.tell(origin)
	}
}

func (n *healthNews) tell(origin string) {
	n.mu.Lock()
	listener := n.listener
	if _, suspended := n.suspended[origin]; suspended {
		n.suspended[origin], listener = true, nil
	}
	n.mu.Unlock()
	if listener != nil {
		listener(origin)
	}
}
