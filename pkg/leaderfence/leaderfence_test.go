package leaderfence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

const duration = 10 * time.Second

// lease is an in-memory lock.
type lease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	// err is the result of the next write.
	err error
	// during is called during each write.
	during func()
}

func (l *lease) Identity() string { return "me" }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := l.record
	return &record, nil, nil
}

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.during != nil {
		l.during()
	}
	if l.err == nil {
		l.record = record
	}
	return l.err
}

func held(by string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: by}
}

func newFence() (*Fence, *clocktesting.FakePassiveClock, *lease, resourcelock.Interface) {
	clk := clocktesting.NewFakePassiveClock(time.Now())
	t := New(duration, clk)
	l := &lease{}
	lock := t.Lock(l)
	return t, clk, l, lock
}

func TestFence(t *testing.T) {
	ctx := t.Context()
	for name, test := range map[string]struct {
		do func(clk *clocktesting.FakePassiveClock, l *lease, lock resourcelock.Interface)
		// over is true if Check must return an error, closed if the process must end.
		over, closed bool
	}{
		"nobody leads yet": {func(*clocktesting.FakePassiveClock, *lease, resourcelock.Interface) {}, false, false},
		"somebody else leads": {func(_ *clocktesting.FakePassiveClock, l *lease, lock resourcelock.Interface) {
			l.record = held("other")
			_, _, _ = lock.Get(ctx)
		}, false, false},
		"acquired by an update": {func(_ *clocktesting.FakePassiveClock, _ *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			_, _, _ = lock.Get(ctx)
		}, false, false},
		"acquired by a creation": {func(_ *clocktesting.FakePassiveClock, _ *lease, lock resourcelock.Interface) {
			_ = lock.Create(ctx, held("me"))
		}, false, false},
		"just good": {func(clk *clocktesting.FakePassiveClock, _ *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			clk.SetTime(clk.Now().Add(duration - 1))
		}, false, false},
		"not renewed": {func(clk *clocktesting.FakePassiveClock, _ *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			clk.SetTime(clk.Now().Add(duration))
		}, true, false},
		"renewed late": {func(clk *clocktesting.FakePassiveClock, _ *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			clk.SetTime(clk.Now().Add(2 * duration))
			_ = lock.Update(ctx, held("me"))
		}, false, false},
		"could not be renewed": {func(clk *clocktesting.FakePassiveClock, l *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			clk.SetTime(clk.Now().Add(duration))
			l.err = errors.New("no answer")
			_ = lock.Update(ctx, held("me"))
		}, true, false},
		"the renewal took long": {func(clk *clocktesting.FakePassiveClock, l *lease, lock resourcelock.Interface) {
			l.during = func() { clk.SetTime(clk.Now().Add(duration)) }
			_ = lock.Update(ctx, held("me"))
		}, true, false},
		"in other hands": {func(_ *clocktesting.FakePassiveClock, l *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			l.record = held("other")
			_, _, _ = lock.Get(ctx)
		}, true, true},
		"released": {func(_ *clocktesting.FakePassiveClock, _ *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			_ = lock.Update(ctx, held(""))
		}, true, true},
		"the clock was set forward": {func(clk *clocktesting.FakePassiveClock, _ *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, held("me"))
			clk.SetTime(clk.Now().Round(0).Add(time.Hour))
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			fence, clk, l, lock := newFence()
			test.do(clk, l, lock)
			if err := fence.Check(); errors.Is(err, ErrNotLeader) != test.over {
				t.Errorf("Check returned %v, want an error: %t", err, test.over)
			}
			select {
			case <-fence.Lost():
				if !test.closed {
					t.Error("the process must not end, but Lost is closed")
				}
			default:
				if test.closed {
					t.Error("the process must end, but Lost is not closed")
				}
			}
		})
	}
}

// TestLeaseOfOthersIsLeftAlone checks that a lease with another holder is not updated. client-go updates the lease to release
// it. If another holder has been observed, its resourceVersion is already in the record, so that this update would succeed and
// take the lease away.
func TestLeaseOfOthersIsLeftAlone(t *testing.T) {
	_, _, l, lock := newFence()
	ctx := t.Context()
	_ = lock.Update(ctx, held("me"))
	l.record = held("other")
	_, _, _ = lock.Get(ctx)
	for _, holder := range []string{"", "me"} {
		if err := lock.Update(ctx, held(holder)); !errors.Is(err, ErrNotLeader) || l.record.HolderIdentity != "other" {
			t.Errorf("after an update to %q: %v, and the holder is %q", holder, err, l.record.HolderIdentity)
		}
	}
}

func TestGuard(t *testing.T) {
	fence, clk, _, lock := newFence()
	sent := map[string]int{}
	transport := fence.Guard(roundTripper(func(request *http.Request) (*http.Response, error) {
		sent[request.Method]++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	try := func() (refused int) {
		for _, method := range methods {
			body := &closable{Reader: strings.NewReader("{}")}
			request, err := http.NewRequestWithContext(t.Context(), method, "https://example.org/", body)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				if refused++; !errors.Is(err, ErrNotLeader) || !body.closed {
					t.Errorf("%s: error %v, body closed: %t", method, err, body.closed)
				}
				continue
			}
			_ = response.Body.Close()
		}
		return refused
	}
	if refused := try(); refused != 0 {
		t.Errorf("%d requests were refused before the process became the leader", refused)
	}
	if err := lock.Update(t.Context(), held("me")); err != nil {
		t.Fatal(err)
	}
	if refused := try(); refused != 0 {
		t.Errorf("%d requests were refused while the process was the leader", refused)
	}
	clk.SetTime(clk.Now().Add(time.Minute))
	if refused := try(); refused != len(methods)-1 || sent[http.MethodGet] != 3 {
		t.Errorf("%d requests were refused, want all writes refused; sent: %v", refused, sent)
	}
}

type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
