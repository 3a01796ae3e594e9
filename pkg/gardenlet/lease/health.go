// Package lease shows that a gardenlet lives: it renews the lease of its Seed in the garden as long as the seed's API server is healthy.
package lease

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Health is what a process reports of its heartbeat. It is safe for concurrent use.
type Health struct {
	clock clock.PassiveClock
	grace time.Duration

	mu sync.Mutex
	// beaten is when the last heartbeat succeeded; zero before the first attempt.
	beaten time.Time
	// failure is why the last attempt failed; nil if it succeeded.
	failure error
}

// NewHealth returns the health of a process that has not begun with its heartbeat, and so is healthy. After that it is until the grace period
// has passed without a success.
func NewHealth(grace time.Duration, clock clock.PassiveClock) *Health {
	return &Health{clock: clock, grace: grace}
}

func (h *Health) record(failure error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure = failure; failure == nil || h.beaten.IsZero() {
		h.beaten = h.clock.Now()
	}
}

// Check returns why the process is not healthy: its last heartbeat failed, or is too long ago.
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
