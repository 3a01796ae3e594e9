package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// brakeTolerance is how often a policy is put back at once before it is put back ever more slowly.
	brakeTolerance = 5
	// brakeMemory is how long a policy has to stay as it is until former corrections are forgotten.
	brakeMemory = 10 * time.Minute
	// brakeDelay is the first delay between two corrections. It doubles up to brakeMaxDelay.
	brakeDelay    = time.Second
	brakeMaxDelay = 5 * time.Minute
)

// brake slows down when somebody keeps changing a policy. It is safe for concurrent use.
type brake struct {
	mu       sync.Mutex
	byPolicy map[types.NamespacedName]correction
	// purged is when what is old was forgotten last.
	purged time.Time
}

// correction is what is remembered of a policy that was changed or deleted.
type correction struct {
	// digest is that of what the policy was made again and again, empty for deletions.
	digest string
	count  int
	last   time.Time
}

func newBrake() *brake { return &brake{byPolicy: map[types.NamespacedName]correction{}} }

// wait returns how long to wait before a policy is made what the digest says; 0 for not at all.
func (b *brake) wait(policy types.NamespacedName, digest string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.byPolicy[policy]
	if known.digest != digest || known.count < brakeTolerance || now.Sub(known.last) > brakeMemory {
		return 0
	}
	delay := min(brakeDelay<<min(known.count-brakeTolerance, 16), brakeMaxDelay)
	return max(known.last.Add(delay).Sub(now), 0)
}

// forget is for a policy that is created: that it is deleted again later is no contest.
func (b *brake) forget(policy types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byPolicy, policy)
}

// corrected notes that a policy is changed or deleted.
func (b *brake) corrected(policy types.NamespacedName, digest string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.purged) > brakeMemory {
		b.purged = now
		for key, known := range b.byPolicy {
			if now.Sub(known.last) > brakeMemory {
				delete(b.byPolicy, key)
			}
		}
	}
	known := b.byPolicy[policy]
	if known.digest != digest || now.Sub(known.last) > brakeMemory {
		known = correction{digest: digest}
	}
	known.count++
	known.last = now
	b.byPolicy[policy] = known
}
