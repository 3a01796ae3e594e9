package ownership

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// PruneDelays remembers since when objects are in no manifest of their ManagedResource any more, so that another one gets
// a moment to take them over before they are deleted. It is safe for concurrent use.
type PruneDelays struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]map[object.Key]time.Time
}

// NewPruneDelays returns an empty memory.
func NewPruneDelays() *PruneDelays {
	return &PruneDelays{byOwner: map[types.NamespacedName]map[object.Key]time.Time{}}
}

// Update replaces what has departed from a ManagedResource and returns since when.
func (d *PruneDelays) Update(owner types.NamespacedName, departed []object.Key, now time.Time) map[object.Key]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := make(map[object.Key]time.Time, len(departed))
	for _, key := range departed {
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
