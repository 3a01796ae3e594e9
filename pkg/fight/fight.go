// Package fight detects fights with other clients: it delays corrections of objects that another client keeps changing.
package fight

import (
	"slices"
	"sync"
	"time"
)

const (
	// Tolerance is the number of corrections of an object within Memory that do not count as a fight. The next correction
	// begins a fight, and corrections after it are delayed.
	Tolerance = 5
	// Memory is how long corrections are remembered. A fight ends when the object stays unchanged for as long.
	Memory = 10 * time.Minute
	// firstDelay is the delay after the first correction in a fight. It doubles with each correction up to maxDelay, which
	// is shorter than Memory, so a fight that continues does not end.
	firstDelay = time.Second
	maxDelay   = 5 * time.Minute
)

// Fight is the record of the corrections of one object. The zero value means no corrections.
type Fight struct {
	// Managers are the other field managers that changed the object, sorted.
	Managers []string
	// Deleted is set if the last correction created the object again, because another client had deleted it.
	Deleted bool
	// digest identifies the content that was written repeatedly.
	digest      string
	corrections int
	last        time.Time
	// recent are the times of the corrections until they become a fight.
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

// Ends returns when the fight ends, unless the object changes before.
func (f Fight) Ends() time.Time { return f.last.Add(Memory + time.Nanosecond) }

// Detector remembers which objects were corrected. It is safe for concurrent use.
type Detector[K comparable] struct {
	mu       sync.Mutex
	byObject map[K]Fight
	// purged is when ended fights were last deleted.
	purged time.Time
}

// New returns an empty detector.
func New[K comparable]() *Detector[K] { return &Detector[K]{byObject: map[K]Fight{}} }

// Of returns the record of an object.
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

// purge deletes ended fights, at most Memory after their end.
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

// Wait returns the delay before the content with the digest may be written to an object again; 0 for none.
func (d *Detector[K]) Wait(object K, digest string, now time.Time) time.Duration {
	known := d.Of(object, now)
	if known.digest != digest {
		return 0
	}
	return max(known.Resumes().Sub(now), 0)
}

// Observe records a correction of an object and reports whether it begins a fight. The digest identifies the written
// content. A different digest starts a new count. The manager is the field manager that changed the object; empty if it
// is not known.
func (d *Detector[K]) Observe(object K, digest, manager string, now time.Time) (begins bool) {
	return d.observe(object, digest, manager, false, now)
}

// ObserveDeletion is Observe for a correction that created the object again, because another client had deleted it. The
// digest is empty.
func (d *Detector[K]) ObserveDeletion(object K, now time.Time) (begins bool) {
	return d.observe(object, "", "", true, now)
}

func (d *Detector[K]) observe(object K, digest, manager string, deleted bool, now time.Time) (begins bool) {
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
	known.last, known.Deleted = now, deleted
	if manager != "" && !slices.Contains(known.Managers, manager) {
		known.Managers = slices.Sorted(slices.Values(append(slices.Clone(known.Managers), manager)))
	}
	d.byObject[object] = known
	return known.corrections == Tolerance+1
}

// Forget resets the record of a newly created object, so that its later deletion does not count as a fight.
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
