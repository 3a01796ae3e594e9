package faults

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// ahead is a clock that is an hour ahead, so that no object is too young for the garbage collector.
type ahead struct{ clock.RealClock }

// Now returns the time one hour from now.
func (a ahead) Now() time.Time { return a.RealClock.Now().Add(time.Hour) }

// Since returns how long ago a time was, by this clock.
func (a ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

// stopping is a clock that stops at a given time, so that objects created later are too young for the garbage
// collector.
type stopping struct {
	clock.RealClock
	at atomic.Pointer[time.Time]
}

// Now returns the time at which the clock has stopped, or the current time.
func (s *stopping) Now() time.Time {
	if at := s.at.Load(); at != nil {
		return *at
	}
	return s.RealClock.Now()
}

// Since returns how long ago a time was, by this clock.
func (s *stopping) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
