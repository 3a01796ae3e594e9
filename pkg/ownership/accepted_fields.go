package ownership

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// AcceptedFields stores the fields of other owners that a complete pass has left on objects, because manifests or
// ManagedResources request that. It is safe for concurrent use.
type AcceptedFields struct {
	mu     sync.Mutex
	fields map[types.NamespacedName]map[object.Key]*fieldpath.Set
}

// NewAcceptedFields returns an empty store.
func NewAcceptedFields() *AcceptedFields {
	return &AcceptedFields{fields: map[types.NamespacedName]map[object.Key]*fieldpath.Set{}}
}

// Set replaces the fields of an owner with those that its reconcile has left on the objects.
func (t *AcceptedFields) Set(owner types.NamespacedName, left map[object.Key]*fieldpath.Set) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.fields, owner)
	if len(left) > 0 {
		t.fields[owner] = left
	}
}

// Exclude removes the take-over candidates from states if they are the accepted ones.
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
