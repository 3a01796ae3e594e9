package scheduler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/scheduler/decision"
)

// waiting holds the Shoots without a possible Seed, with the facts that could change this. It is safe for concurrent use.
type waiting struct {
	mu     sync.Mutex
	shoots map[types.NamespacedName]refusal
}

// refusal is what a refusal depends on.
type refusal struct {
	// open is set while a decision is made: everything could change it.
	open bool
	// project is the name of the project.
	project string
	// answer has the reasons.
	answer decision.Answer
}

func newWaiting() *waiting { return &waiting{shoots: map[types.NamespacedName]refusal{}} }

func (w *waiting) add(key types.NamespacedName, refused refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shoots[key] = refused
}

func (w *waiting) remove(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.shoots, key)
}

// matching returns the waiting Shoots whose refusals match.
func (w *waiting) matching(match func(types.NamespacedName, refusal) bool) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []types.NamespacedName
	for key, refused := range w.shoots {
		if refused.open || match(key, refused) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (w *waiting) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.shoots)
}

func anything(types.NamespacedName, refusal) bool { return true }

// lacksPlace matches refusals in which one of the Seeds had no place.
func lacksPlace(seeds []string) func(types.NamespacedName, refusal) bool {
	return func(_ types.NamespacedName, refused refusal) bool {
		for _, seed := range seeds {
			if refused.answer.Full(seed) {
				return true
			}
		}
		return false
	}
}
