package live

import (
	"sync"
	"time"
)

const (
	// minRolloutWait is the shortest wait for rollouts. They take milliseconds if no Pod has to be replaced.
	minRolloutWait = 100 * time.Millisecond
	// maxRolloutWait is the longest wait. Users do not notice such a delay of the status.
	maxRolloutWait = 500 * time.Millisecond
	// expectedFactor is the factor by which a rollout may take longer than the previous one.
	expectedFactor = 4
)

// rolloutWait determines how long to wait for rollouts before a status reports their start, so that one status can
// report both start and end: if recent rollouts took milliseconds, the next one usually finishes soon. It is safe for
// concurrent use.
type rolloutWait struct {
	mu      sync.Mutex
	current time.Duration
}

func newRolloutWait() *rolloutWait { return &rolloutWait{current: minRolloutWait} }

// limit returns how long to wait.
func (p *rolloutWait) limit() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// learn records that a rollout finished after some time, or did not finish within that time.
func (p *rolloutWait) learn(waited time.Duration, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended {
		p.current = max(p.current, waited*expectedFactor)
	} else {
		p.current = p.current * 3 / 4
	}
	p.current = min(max(p.current, minRolloutWait), maxRolloutWait)
}
