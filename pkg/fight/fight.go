// Package fight detects fights: it delays corrections of objects that another client keeps changing.
package fight

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// tolerance is how often an object is corrected immediately, before corrections are delayed.
	tolerance = 5
	// memory is how long an object has to stay as it is until former corrections are forgotten.
	memory = 10 * time.Minute
	// firstDelay is the first delay between two corrections. It doubles up to maxDelay.
	firstDelay = time.Second
	maxDelay   = 5 * time.Minute
)

// Detector delays corrections of an object that another client keeps changing. It is safe for concurrent use.
type Detector struct {
	mu       sync.Mutex
	byObject map[types.NamespacedName]correction
	// purged is when what is old was forgotten last.
	purged time.Time
}

// correction is what is remembered of an object that was changed or deleted.
type correction struct {
	// digest is that of the content that was written repeatedly, empty for deletions.
	digest string
	count  int
	last   time.Time
}

// New returns an empty detector.
func New() *Detector { return &Detector{byObject: map[types.NamespacedName]correction{}} }

// Wait returns how long to wait before an object is made what the digest says; 0 for not at all.
func (d *Detector) Wait(object types.NamespacedName, digest string, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.byObject[object]
	if known.digest != digest || known.count < tolerance || now.Sub(known.last) > memory {
		return 0
	}
	delay := min(firstDelay<<min(known.count-tolerance, 16), maxDelay)
	return max(known.last.Add(delay).Sub(now), 0)
}

// Forget resets a newly created object: its later deletion is not a fight.
func (d *Detector) Forget(object types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byObject, object)
}

// Observe records that an object is changed or deleted.
func (d *Detector) Observe(object types.NamespacedName, digest string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.purged) > memory {
		d.purged = now
		for key, known := range d.byObject {
			if now.Sub(known.last) > memory {
				delete(d.byObject, key)
			}
		}
	}
	known := d.byObject[object]
	if known.digest != digest || now.Sub(known.last) > memory {
		known = correction{digest: digest}
	}
	known.count++
	known.last = now
	d.byObject[object] = known
}
