// Package leaderfence prevents writes by a process that is no longer the leader. Leader election alone does not prevent
// them. When a paused process resumes, it continues where it stopped, and gives up only after it has failed to renew
// its lease for the whole renew deadline. Until then it would revert the changes of its successor.
//
// A [Fence] records each renewal of the lease, and refuses every write request if the last renewal was too long ago. It
// also checks the lease itself. Once another process holds the lease, this process neither acquires it again, because
// its memory may be outdated, nor releases it, because that would take it from the holder.
package leaderfence

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrNotLeader reports that the process is no longer the leader, or cannot be sure of it. The request was not sent.
var ErrNotLeader = errors.New("this process no longer holds the leader lease")

// Fence allows writes only while the process is the leader. It is safe for concurrent use.
type Fence struct {
	clock    clock.PassiveClock
	duration time.Duration

	mu sync.Mutex
	// renewed is the start time of the last renewal; zero before the lease was acquired.
	renewed time.Time
	// lost is closed when another process holds the lease, or this process released it.
	lost chan struct{}
}

// New returns the fence of a process that has not acquired its lease yet. A renewal is valid for the given duration. It
// is the renew deadline, after which a leader must give up, and which is shorter than the time after which others may
// acquire the lease.
func New(duration time.Duration, clock clock.PassiveClock) *Fence {
	return &Fence{clock: clock, duration: duration, lost: make(chan struct{})}
}

// Lost is closed when the process has lost its lease or released it.
func (f *Fence) Lost() <-chan struct{} { return f.lost }

// Check returns ErrNotLeader if the process was the leader and may no longer be. Before it leads, Check returns nil,
// because components that need leadership have not started yet.
func (f *Fence) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renewed.IsZero() && !f.isLost() {
		return nil
	}
	now := f.clock.Now()
	// The monotonic clock stops while a machine sleeps, and the wall clock may be set, so both count.
	passed := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
	if f.isLost() || passed >= f.duration {
		return ErrNotLeader
	}
	return nil
}

func (f *Fence) isLost() bool {
	select {
	case <-f.lost:
		return true
	default:
		return false
	}
}

func (f *Fence) renew(begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = begun
}

func (f *Fence) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isLost() {
		close(f.lost)
	}
}

func (f *Fence) began() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.renewed.IsZero()
}

// Guard returns a transport that refuses write requests after leadership has ended.
func (f *Fence) Guard(next http.RoundTripper) http.RoundTripper { return &guard{f, next} }

type guard struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip sends a request, or returns ErrNotLeader.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return g.next.RoundTrip(request)
	}
	if err := g.fence.Check(); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	return g.next.RoundTrip(request)
}

// Lock returns a lock for leader election that reports the state of the lease to the fence.
func (f *Fence) Lock(lock resourcelock.Interface) resourcelock.Interface { return &observed{lock, f} }

type observed struct {
	resourcelock.Interface
	fence *Fence
}

// Get returns the holder of the lease. If this process held it and another one does now, leadership has ended.
func (o *observed) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := o.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != o.Identity() && o.fence.began() {
		o.fence.end()
	}
	return record, raw, err
}

// Create creates the lease.
func (o *observed) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return o.write(ctx, record, o.Interface.Create)
}

// Update acquires, renews or releases the lease. It refuses all three after leadership has ended.
func (o *observed) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return o.write(ctx, record, o.Interface.Update)
}

func (o *observed) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if o.fence.isLost() {
		return ErrNotLeader
	}
	begun := o.fence.clock.Now()
	if err := send(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == o.Identity() {
		o.fence.renew(begun)
	} else {
		o.fence.end()
	}
	return nil
}
