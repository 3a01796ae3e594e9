// Package tenure keeps a process that does not lead any more from writing. Leader election alone does not: a process that was
// paused goes on where it was as soon as it is resumed, and gives up only when it could not renew its lease for the whole renew
// deadline from then on. Until then it would undo what its successor has done.
//
// A [Tenure] takes note of each renewal of the lease, and refuses every request that writes when the last one was too long ago.
// It also watches over the lease itself: once it was seen in other hands it is neither acquired again, since what the process
// remembers may be outdated, nor released, since that would take it from its holder.
package tenure

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrOver says that the process does not lead any more, or cannot be sure of it, and that nothing was sent.
var ErrOver = errors.New("this process no longer holds the leader lease")

// Tenure is the time during which a process leads. It is safe for concurrent use.
type Tenure struct {
	clock    clock.PassiveClock
	duration time.Duration

	mu sync.Mutex
	// renewed is when the last renewal was begun; zero before the lease was acquired.
	renewed time.Time
	// over is closed when the lease was seen in other hands, or was released.
	over chan struct{}
}

// New returns the fence of a process that has not acquired its lease yet. A renewal is valid for the given duration: the renew
// deadline, after which a leader has to give up, and which is shorter than the time after which others may acquire the lease.
func New(duration time.Duration, clock clock.PassiveClock) *Tenure {
	return &Tenure{clock: clock, duration: duration, over: make(chan struct{})}
}

// Over is closed when the process has lost its lease or released it.
func (t *Tenure) Over() <-chan struct{} { return t.over }

// Check returns ErrOver if the process was the leader and may no longer be. Before it leads, Check returns nil: whatever
// needs a leader has not been started.
func (t *Tenure) Check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewed.IsZero() && !t.isOver() {
		return nil
	}
	now := t.clock.Now()
	// By the time that has passed and by the time of day: the first stands still while a machine sleeps, the second may be set.
	passed := max(now.Sub(t.renewed), now.Round(0).Sub(t.renewed.Round(0)))
	if t.isOver() || passed >= t.duration {
		return ErrOver
	}
	return nil
}

func (t *Tenure) isOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

func (t *Tenure) renew(begun time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = begun
}

func (t *Tenure) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isOver() {
		close(t.over)
	}
}

func (t *Tenure) began() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.renewed.IsZero()
}

// Guard returns a transport that refuses to send what writes when the tenure is over.
func (t *Tenure) Guard(next http.RoundTripper) http.RoundTripper { return &guard{t, next} }

type guard struct {
	tenure *Tenure
	next   http.RoundTripper
}

// RoundTrip sends a request, or returns ErrOver.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return g.next.RoundTrip(request)
	}
	if err := g.tenure.Check(); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	return g.next.RoundTrip(request)
}

// Lock returns a lock for leader election that reports the state of the lease to the fence.
func (t *Tenure) Lock(lock resourcelock.Interface) resourcelock.Interface { return &observed{lock, t} }

type observed struct {
	resourcelock.Interface
	tenure *Tenure
}

// Get returns the holder of the lease. If another process holds it although it was ours, leadership has ended.
func (o *observed) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := o.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != o.Identity() && o.tenure.began() {
		o.tenure.end()
	}
	return record, raw, err
}

// Create creates the lease.
func (o *observed) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return o.write(ctx, record, o.Interface.Create)
}

// Update acquires, renews or releases the lease. It refuses all three when the tenure is over.
func (o *observed) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return o.write(ctx, record, o.Interface.Update)
}

func (o *observed) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if o.tenure.isOver() {
		return ErrOver
	}
	begun := o.tenure.clock.Now()
	if err := send(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == o.Identity() {
		o.tenure.renew(begun)
	} else {
		o.tenure.end()
	}
	return nil
}
