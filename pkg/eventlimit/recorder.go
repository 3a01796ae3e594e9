// Package eventlimit limits the number of Events about an object. client-go merges equal Events only while the
// resourceVersion of the object stays the same. Every written status changes it, and there is no limit for Events that
// differ.
package eventlimit

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// burst is the number of Events with different notes that may follow each other for the same object and reason.
	burst = 5
	// refill is the time after which another one is allowed.
	refill = 2 * time.Minute
	// sameFor is how long an Event with the same note as the last one is merged with it instead of created. client-go
	// forgets an Event after six minutes without a repetition.
	sameFor = time.Hour
	// remembered is the maximum number of objects and reasons in memory. The most recent ones are kept.
	remembered = 4096
)

// Recorder limits the Events that another recorder writes.
type Recorder struct {
	next   events.EventRecorder
	scheme *runtime.Scheme
	clock  clock.PassiveClock
	// seed is for hashes of notes, which are stored because notes are long.
	seed maphash.Seed

	mu    sync.Mutex
	known *lru.Cache // *bucket by key
}

type key struct {
	regarding               corev1.ObjectReference
	eventType, reason, verb string
}

// bucket is the state for the Events with one key.
type bucket struct {
	left   int
	filled time.Time
	// note is the hash of the note of the last written Event, version the resourceVersion of its object, and written its
	// time.
	note    uint64
	version string
	written time.Time
}

var _ events.EventRecorder = &Recorder{}

// New returns a recorder in front of another one.
func New(next events.EventRecorder, scheme *runtime.Scheme, clk clock.PassiveClock) *Recorder {
	return &Recorder{next: next, scheme: scheme, clock: clk, seed: maphash.MakeSeed(), known: lru.New(remembered)}
}

// Eventf writes an Event. It drops the Event if five Events with different notes for the same object and reason were
// written within minutes. The conditions show the current state then. An Event that repeats the last one is merged with
// it.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	ref, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.next.Eventf(regarding, related, eventType, reason, action, note, args...) // logs the error
		return
	}
	text := fmt.Sprintf(note, args...)
	about := *ref
	about.ResourceVersion = ""
	version, ok := r.admit(key{about, eventType, reason, action}, maphash.String(r.seed, text), ref.ResourceVersion)
	if !ok {
		return
	}
	ref.ResourceVersion = version
	r.next.Eventf(ref, related, eventType, reason, action, "%s", text)
}

// admit reports whether an Event is written, and returns the resourceVersion of its object to use, by which client-go
// finds equal Events.
func (r *Recorder) admit(of key, note uint64, version string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	b := &bucket{left: burst, filled: now}
	if found, is := r.known.Get(of); is {
		b, _ = found.(*bucket)
	} else {
		r.known.Add(of, b)
	}
	if note == b.note && now.Sub(b.written) < sameFor {
		return b.version, true
	}
	if more := int(now.Sub(b.filled) / refill); more > 0 {
		b.left, b.filled = min(b.left+more, burst), b.filled.Add(time.Duration(more)*refill)
	}
	if b.left == 0 {
		return "", false
	}
	b.left--
	b.note, b.version, b.written = note, version, now
	return version, true
}
