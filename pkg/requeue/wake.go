package requeue

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Wake collects when a controller must reconcile an object again without an event. The earliest time counts.
type Wake struct {
	// Now is the time of the pass.
	Now  time.Time
	next time.Time
}

// At requests a reconcile at a time, or immediately if that time is past. The zero time requests none.
func (w *Wake) At(next time.Time) { w.next = Earlier(w.next, next) }

// In requests a reconcile after a duration. 0 requests none.
func (w *Wake) In(wait time.Duration) {
	if wait > 0 {
		w.At(w.Now.Add(wait))
	}
}

// Result returns the result for controller-runtime.
func (w *Wake) Result() reconcile.Result { return At(w.next, w.Now) }
