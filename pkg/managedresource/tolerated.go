package managedresource

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// tolerated remembers which fields of others a complete pass left where they are, because manifests or
// ManagedResources ask for that. It is safe for concurrent use.
type tolerated struct {
	mu     sync.Mutex
	fields map[types.NamespacedName]map[object.Key]*fieldpath.Set
}

func newTolerated() *tolerated {
	return &tolerated{fields: map[types.NamespacedName]map[object.Key]*fieldpath.Set{}}
}

// note replaces what is remembered of an owner by what its changes left.
func (t *tolerated) note(owner types.NamespacedName, changes []change) {
	left := map[object.Key]*fieldpath.Set{}
	for _, change := range changes {
		if change.manifest != nil && change.observation.Displaceable != nil {
			left[change.Key()] = change.observation.Displaceable
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.fields, owner)
	if len(left) > 0 {
		t.fields[owner] = left
	}
}

// leaveOut takes out of the states what was tolerated before.
func (t *tolerated) leaveOut(owner types.NamespacedName, states map[object.Key]live.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, fields := range t.fields[owner] {
		if state := states[key]; state.Observation.Displaceable != nil && state.Observation.Displaceable.Equals(fields) {
			state.Observation.Displaceable = nil
			states[key] = state
		}
	}
}
