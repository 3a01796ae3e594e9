package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"
)

type counts struct{ ran, failed int }

func (c *counts) Ran(_ string, failed bool) {
	c.ran++
	if failed {
		c.failed++
	}
}

// TestLoop checks that a controller runs again when it is woken, when its time has come and after an error, and ends with an error that was wrapped.
func TestLoop(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	ran, end := make(chan struct{}), errors.New("the end")
	results := make(chan error)
	seen := &counts{}
	l := New("test", func(context.Context) (time.Duration, error) {
		ran <- struct{}{}
		return time.Minute, <-results
	}, clock, logr.Discard(), seen)
	ended := make(chan error, 1)
	go func() { ended <- l.Start(t.Context()) }()
	step := func(forward time.Duration) {
		t.Helper()
		for !clock.HasWaiters() {
			select {
			case <-t.Context().Done():
				t.Fatal("the loop does not wait")
			case <-time.After(time.Millisecond):
			}
		}
		clock.Step(forward)
	}
	<-ran
	results <- nil
	step(time.Minute)
	<-ran // the time has come
	l.Wake()
	l.Wake()
	results <- nil
	<-ran // woken while it ran, and once for two calls
	results <- errors.New("refused")
	step(2 * time.Second) // at most 1.2 s
	<-ran
	results <- errors.New("refused")
	step(time.Second)
	select {
	case <-ran:
		t.Error("the second retry is as soon as the first")
	case <-time.After(50 * time.Millisecond):
	}
	step(2 * time.Second)
	<-ran
	results <- End(end)
	if err := <-ended; !errors.Is(err, end) || seen.ran != 4 || seen.failed != 2 {
		t.Errorf("ended with %v after %+v", err, seen)
	}
}

// TestEndOfContext checks that the end of the context ends the loop without an error, also while it waits.
func TestEndOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := New("test", func(context.Context) (time.Duration, error) { return 0, nil }, clocktesting.NewFakeClock(time.Now()), logr.Discard(), &counts{})
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
