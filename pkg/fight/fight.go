// Package fight detects fights: it delays corrections of objects that another client keeps changing.
package fight

import (
	"slices"
	"sync"
	"time"
)

const (
	// Tolerance is the number of corrections of an object within Memory that are not a fight. The next one begins a fight, and corrections
	// after it are delayed.
	Tolerance = 5
	// Memory is also how long an object has to stay unchanged until a fight ends.
	Memory = 10 * time.Minute
	// firstDelay is the first delay between two corrections. It doubles with every correction, up to maxDelay, which is shorter than
	// Memory, so that a fight that continues does not end.
	firstDelay = time.Second
	maxDelay   = 5 * time.Minute
)

// Fight is what is remembered of the corrections of one object. The zero value is that of an object that was not corrected.
type Fight struct {
	// Managers are the other field managers that changed the object, sorted.
	Managers []string
	// digest identifies the content that was written repeatedly.
	digest      string
	corrections int
	last        time.Time
	// recent are the times of the corrections while they are not a fight.
	recent []time.Time
}

// Active reports whether another client keeps changing the object.
func (f Fight) Active() bool { return f.corrections > Tolerance }

// Resumes returns when the object may be corrected again.
func (f Fight) Resumes() time.Time {
	if !f.Active() {
		return f.last
	}
	delay := maxDelay
	if doublings := f.corrections - Tolerance - 1; doublings < 16 {
		delay = min(delay, firstDelay<<doublings)
	}
	return f.last.Add(delay)
}

// Ends returns when the fight ends, unless the object is changed before.
func (f Fight) Ends() time.Time { return f.last.Add(Memory + time.Nanosecond) }

// Detector remembers which objects were corrected. It is safe for concurrent use.
type Detector[K comparable] struct {
	mu       sync.Mutex
	byObject map[K]Fight
	// purged is when the fights that have ended were last deleted.
	purged time.Time
}

// New returns an empty detector.
func New[K comparable]() *Detector[K] { return &Detector[K]{byObject: map[K]Fight{}} }

// Of returns what is remembered of an object.
func (d *Detector[K]) Of(object K, now time.Time) Fight {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of(object, now)
}

func (d *Detector[K]) of(object K, now time.Time) Fight {
	d.purge(now)
	known := d.byObject[object]
	if now.Sub(known.last) > Memory {
		return Fight{}
	}
	return known
}

// purge deletes the fights that have ended, each at the latest Memory after its end.
func (d *Detector[K]) purge(now time.Time) {
	if now.Sub(d.purged) <= Memory {
		return
	}
	d.purged = now
	for object, known := range d.byObject {
		if now.Sub(known.last) > Memory {
			delete(d.byObject, object)
		}
	}
}

// Wait returns how long to wait before an object gets the content of the digest again; 0 if it need not wait.
func (d *Detector[K]) Wait(object K, digest string, now time.Time) time.Duration {
	known := d.Of(object, now)
	if known.digest != digest {
		return 0
	}
	return max(known.Resumes().Sub(now), 0)
}

// Observe records a correction of an object. The digest identifies the content that the object gets: another content begins a new count. The
// manager is the field manager that changed the object, empty if it is not known. Observe reports whether the correction begins a fight.
func (d *Detector[K]) Observe(object K, digest, manager string, now time.Time) (begins bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.of(object, now)
	if known.digest != digest {
		known = Fight{digest: digest}
	}
	if known.Active() {
		known.corrections++
	} else {
		known.recent = append(slices.DeleteFunc(slices.Clone(known.recent), func(at time.Time) bool { return now.Sub(at) > Memory }), now)
		known.corrections = len(known.recent)
	}
	if known.Active() {
		known.recent = nil
	}
	known.last = now
	if manager != "" && !slices.Contains(known.Managers, manager) {
		known.Managers = slices.Sorted(slices.Values(append(slices.Clone(known.Managers), manager)))
	}
	d.byObject[object] = known
	return known.corrections == Tolerance+1
}

// Forget resets a newly created object: its later deletion is not a fight.
func (d *Detector[K]) Forget(object K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byObject, object)
}

// Count returns the number of active fights.
func (d *Detector[K]) Count(now time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	active := 0
	for _, known := range d.byObject {
		if known.Active() && now.Sub(known.last) <= Memory {
			active++
		}
	}
	return active
}
