// Package loop runs the controllers of the node agent. Each has one object, so that it needs no queue: it runs when it is woken, when the time that
// it returned has passed, and after an error with growing delays.
package loop

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// First and longest delay after an error.
const firstRetry, longestRetry = time.Second, 2 * time.Minute

// endError ends all loops.
type endError struct{ error }

// Unwrap returns the reason.
func (e endError) Unwrap() error { return e.error }

// End wraps an error so that the loop ends with it, instead of retrying.
func End(err error) error { return endError{err} }

// Reporter counts what loops do. Its methods may be called concurrently.
type Reporter interface {
	// Ran reports that a controller ran, and whether it failed.
	Ran(controller string, failed bool)
}

// Loop runs a controller. Wake may be called before Start.
type Loop struct {
	// Name is the name of the controller.
	Name string
	// Run does the work once. It returns after what time it must run again; zero means only when it is woken.
	Run      func(ctx context.Context) (again time.Duration, err error)
	Clock    clock.WithTicker
	Log      logr.Logger
	Reporter Reporter

	woken chan struct{}
}

// New returns a loop.
func New(name string, run func(ctx context.Context) (time.Duration, error), c clock.WithTicker, log logr.Logger, reporter Reporter) *Loop {
	return &Loop{Name: name, Run: run, Clock: c, Log: log.WithValues("controller", name), Reporter: reporter, woken: make(chan struct{}, 1)}
}

// Wake makes the controller run soon. It does not block.
func (l *Loop) Wake() {
	select {
	case l.woken <- struct{}{}:
	default: // it runs soon anyway
	}
}

// Start runs the controller until the context ends, and returns nil then, or the error that End wrapped.
func (l *Loop) Start(ctx context.Context) error {
	backoff, last := newBackoff(), ""
	for ctx.Err() == nil {
		again, err := l.Run(ctx)
		var end endError
		if ctx.Err() != nil || errors.As(err, &end) {
			return end.error
		}
		l.Reporter.Ran(l.Name, err != nil)
		if err != nil {
			if text := conditiontext.Stable(err.Error()); text != last {
				l.Log.Error(err, "Failed, and tries again")
				last = text
			}
			again = backoff.Step()
		} else {
			if last != "" {
				l.Log.Info("Works again")
			}
			backoff, last = newBackoff(), ""
		}
		l.wait(ctx, again)
	}
	return nil
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.2, Steps: 100, Cap: longestRetry}
}

// wait waits until the loop is woken, the time has passed, or the context ends.
func (l *Loop) wait(ctx context.Context, again time.Duration) {
	var timer <-chan time.Time
	if again > 0 {
		t := l.Clock.NewTimer(again)
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-l.woken:
	}
}
