package live

import (
	"sync"
	"time"
)

const (
	// leastPatience is how long is waited for rollouts in any case. Where no Pod has to be replaced they take milliseconds.
	leastPatience = 100 * time.Millisecond
	// mostPatience is how long is waited at most: nobody notices that a status comes later by that much.
	mostPatience = 500 * time.Millisecond
	// expectedFactor is how many times as long as one rollout another one may take.
	expectedFactor = 4
)

// patience is for how long it is worth while to wait for rollouts before their beginning is told, so that one status tells both: where
// those before took milliseconds, the next one mostly ends soon. It is safe for concurrent use.
type patience struct {
	mu      sync.Mutex
	current time.Duration
}

func newPatience() *patience { return &patience{current: leastPatience} }

// limit returns how long to wait.
func (p *patience) limit() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// learn takes in that a rollout ended after some time, or did not within that time.
func (p *patience) learn(waited time.Duration, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended {
		p.current = max(p.current, waited*expectedFactor)
	} else {
		p.current = p.current * 3 / 4
	}
	p.current = min(max(p.current, leastPatience), mostPatience)
}
