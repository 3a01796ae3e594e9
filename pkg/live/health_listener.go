package live

import "sync"

// healthListener notifies its listener of origins whose objects have changed their health. It is safe for concurrent
// use.
type healthListener struct {
	mu       sync.Mutex
	listener func(origin string)
	// suspended are the origins whose notifications are suspended, and whether their health has changed since then.
	suspended map[string]bool
}

// ListenHealth sets the listener that is called, immediately and in undefined order, with the origins of objects whose
// health has changed. The listener must not block.
func (v *View) ListenHealth(listener func(origin string)) {
	v.health.mu.Lock()
	defer v.health.mu.Unlock()
	v.health.listener = listener
}

// SuspendHealth suspends the notifications of an origin until the returned function is called. It is used while the
// objects of the origin are being changed, because each change affects their health.
func (v *View) SuspendHealth(origin string) (resume func()) {
	v.health.mu.Lock()
	defer v.health.mu.Unlock()
	v.health.suspended[origin] = false
	return func() { v.health.resume(origin) }
}

// HealthSuspended reports whether the notifications of an origin are suspended, because its objects are being changed.
func (v *View) HealthSuspended(origin string) bool {
	v.health.mu.Lock()
	defer v.health.mu.Unlock()
	_, suspended := v.health.suspended[origin]
	return suspended
}

func (l *healthListener) resume(origin string) {
	l.mu.Lock()
	changed := l.suspended[origin]
	delete(l.suspended, origin)
	l.mu.Unlock()
	if changed {
		l.notify(origin)
	}
}

func (l *healthListener) notify(origin string) {
	l.mu.Lock()
	listener := l.listener
	if _, suspended := l.suspended[origin]; suspended {
		l.suspended[origin], listener = true, nil
	}
	l.mu.Unlock()
	if listener != nil {
		listener(origin)
	}
}
