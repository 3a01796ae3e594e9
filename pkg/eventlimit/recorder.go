// Package eventlimit bounds how many Events are written about an object. client-go counts Events that are alike, but only while the
// object keeps its resourceVersion, which every written status changes, and it has no limit for those that differ.
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
	// burst is how many Events with different notes may follow each other, for one object and reason.
	burst = 5
	// refill is the time after which one more may.
	refill = 2 * time.Minute
	// sameFor is how long an Event with the note of the last one is counted with it, instead of created. client-go forgets it
	// after six minutes without another one.
	sameFor = time.Hour
	// remembered is the number of objects and reasons in memory, most recent first.
	remembered = 4096
)

// Recorder writes Events by another one.
type Recorder struct {
	next   events.EventRecorder
	scheme *runtime.Scheme
	clock  clock.PassiveClock
	// seed is for hashes of notes, which are longer than all else that is remembered.
	seed maphash.Seed

	mu    sync.Mutex
	known *lru.Cache // *bucket by key
}

type key struct {
	regarding               corev1.ObjectReference
	eventType, reason, verb string
}

// bucket is what is known of the Events with one key.
type bucket struct {
	left   int
	filled time.Time
	// note is the hash of that of the last Event that was written, version is the version of its object, and when it was.
	note    uint64
	version string
	written time.Time
}

var _ events.EventRecorder = &Recorder{}

// New returns a recorder in front of another one.
func New(next events.EventRecorder, scheme *runtime.Scheme, clk clock.PassiveClock) *Recorder {
	return &Recorder{next: next, scheme: scheme, clock: clk, seed: maphash.MakeSeed(), known: lru.New(remembered)}
}

// Eventf writes an Event, unless five with other notes about the same object and for the same reason went before within minutes: then
// it is dropped, and conditions show the current state. An Event that repeats the last one is counted with it.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	ref, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.next.Eventf(regarding, related, eventType, reason, action, note, args...) // which logs it
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

// admit returns whether an Event is written, and with which resourceVersion of its object: client-go uses it to find equal Events.
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
