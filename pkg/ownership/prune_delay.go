package ownership

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// PruneDelays stores when objects were removed from the manifests of their ManagedResource, so that another one
// has time to take them over before they are deleted. It is safe for concurrent use.
type PruneDelays struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]map[object.Key]time.Time
}

// NewPruneDelays returns an empty store.
func NewPruneDelays() *PruneDelays {
	return &PruneDelays{byOwner: map[types.NamespacedName]map[object.Key]time.Time{}}
}

// Update replaces the unwanted objects of a ManagedResource, and returns when each of them became unwanted.
func (d *PruneDelays) Update(owner types.NamespacedName, unwanted []object.Key, now time.Time) map[object.Key]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := make(map[object.Key]time.Time, len(unwanted))
	for _, key := range unwanted {
		since[key] = now
		if before, known := d.byOwner[owner][key]; known {
			since[key] = before
		}
	}
	delete(d.byOwner, owner)
	if len(since) > 0 {
		d.byOwner[owner] = since
	}
	return since
}
