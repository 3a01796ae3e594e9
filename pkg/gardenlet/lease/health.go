// Package lease reports that a gardenlet is alive: it renews the lease of its Seed in the garden while the seed's API server is healthy.
package lease

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Health is the health check of the heartbeat. It is safe for concurrent use.
type Health struct {
	clock clock.PassiveClock
	grace time.Duration

	mu sync.Mutex
	// beaten is the time of the last successful heartbeat, or of the first attempt. It is zero before that.
	beaten time.Time
	// failure is the error of the last attempt, or nil if it succeeded.
	failure error
}

// NewHealth returns the health check of a process that has not started its heartbeat. It is healthy until then, and later
// as long as the last success is not older than the grace period.
func NewHealth(grace time.Duration, clock clock.PassiveClock) *Health {
	return &Health{clock: clock, grace: grace}
}

// record records the result of an attempt.
func (h *Health) record(failure error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure = failure; failure == nil || h.beaten.IsZero() {
		h.beaten = h.clock.Now()
	}
}

// Check returns an error if the last heartbeat failed or is too long ago.
func (h *Health) Check(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.failure != nil:
		return fmt.Errorf("the lease of the Seed could not be renewed: %w", h.failure)
	case !h.beaten.IsZero() && h.clock.Since(h.beaten) > h.grace:
		return errors.New("the lease of the Seed has not been renewed for " + h.clock.Since(h.beaten).Round(time.Second).String())
	}
	return nil
}
