package live

import (
	"sync"
	"time"
)

const (
	// shortestRolloutWait is how long is waited for rollouts in any case. Where no Pod has to be replaced they take milliseconds.
	shortestRolloutWait = 100 * time.Millisecond
	// longestRolloutWait is how long is waited at most: nobody notices that a status comes later by that much.
	longestRolloutWait = 500 * time.Millisecond
	// expectedFactor is how many times as long as one rollout another one may take.
	expectedFactor = 4
)

// rolloutWait is for how long it is worth while to wait for rollouts before their beginning is told, so that one status tells both: where
// those before took milliseconds, the next one mostly ends soon. It is safe for concurrent use.
type rolloutWait struct {
	mu      sync.Mutex
	current time.Duration
}

func newRolloutWait() *rolloutWait { return &rolloutWait{current: shortestRolloutWait} }

// limit returns how long to wait.
func (p *rolloutWait) limit() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// learn takes in that a rollout ended after some time, or did not within that time.
func (p *rolloutWait) learn(waited time.Duration, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended {
		p.current = max(p.current, waited*expectedFactor)
	} else {
		p.current = p.current * 3 / 4
	}
	p.current = min(max(p.current, shortestRolloutWait), longestRolloutWait)
}
