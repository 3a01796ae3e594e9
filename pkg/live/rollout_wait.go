package live

import (
	"sync"
	"time"
)

const (
	// shortestRolloutWait is the shortest wait for rollouts. If no Pod has to be replaced, they take milliseconds.
	shortestRolloutWait = 100 * time.Millisecond
	// longestRolloutWait is the longest wait: a status that is written later by that much makes no difference to people.
	longestRolloutWait = 500 * time.Millisecond
	// expectedFactor is how many times as long as one rollout another one may take.
	expectedFactor = 4
)

// rolloutWait learns how long to wait for rollouts before a status reports that they began, so that one status reports both begin and end:
// where former ones took milliseconds, the next one mostly ends soon. It is safe for concurrent use.
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
