package ownership

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// AcceptedFields remembers which fields of others a complete pass left where they are, because manifests or
// ManagedResources ask for that. It is safe for concurrent use.
type AcceptedFields struct {
	mu     sync.Mutex
	fields map[types.NamespacedName]map[object.Key]*fieldpath.Set
}

// NewAcceptedFields returns an empty memory.
func NewAcceptedFields() *AcceptedFields {
	return &AcceptedFields{fields: map[types.NamespacedName]map[object.Key]*fieldpath.Set{}}
}

// Set replaces what is remembered of an owner by the fields that its reconcile left.
func (t *AcceptedFields) Set(owner types.NamespacedName, left map[object.Key]*fieldpath.Set) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.fields, owner)
	if len(left) > 0 {
		t.fields[owner] = left
	}
}

// Exclude takes out of the states what was tolerated before.
func (t *AcceptedFields) Exclude(owner types.NamespacedName, states map[object.Key]live.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, fields := range t.fields[owner] {
		if state := states[key]; state.Observation.TakeOverCandidates != nil && state.Observation.TakeOverCandidates.Equals(fields) {
			state.Observation.TakeOverCandidates = nil
			states[key] = state
		}
	}
}
