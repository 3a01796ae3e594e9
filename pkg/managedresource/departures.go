package managedresource

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// departures remembers since when objects are in no manifest of their ManagedResource any more, so that another one gets
// a moment to take them over before they are deleted. It is safe for concurrent use.
type departures struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]map[object.Key]time.Time
}

func newDepartures() *departures {
	return &departures{byOwner: map[types.NamespacedName]map[object.Key]time.Time{}}
}

// loneDelay is how long an object that left the manifests of the only ManagedResource waits for another one to appear: long enough for
// a client that writes one after the other.
const loneDelay = 100 * time.Millisecond

// pruneDelay returns how long objects that left the manifests wait for another ManagedResource to take them over. Without another one,
// nothing of the sort is to be expected.
func (p *pass) pruneDelay(ctx context.Context) time.Duration {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if p.claims.shared(p.self.Owner) || p.Source.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return p.Options.PruneDelay
	}
	for i := range list.Items {
		other := &list.Items[i]
		if client.ObjectKeyFromObject(other) != p.self.Owner && other.DeletionTimestamp == nil && resourcesv1alpha1.HasClass(other, p.Options.Class) {
			return p.Options.PruneDelay
		}
	}
	return min(p.Options.PruneDelay, loneDelay)
}

// note replaces what has departed from a ManagedResource and returns since when.
func (d *departures) note(owner types.NamespacedName, departed inventory, now time.Time) map[object.Key]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := make(map[object.Key]time.Time, len(departed))
	for key := range departed {
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
