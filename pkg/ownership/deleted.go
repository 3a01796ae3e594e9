package ownership

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Deleted remembers which recorded objects of ManagedResources that are being deleted are gone or released. The status is not written
// for each of them, so the stored inventory names more than there is: without this, every look would ask for all of it again. It is
// safe for concurrent use.
type Deleted struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]droppedObjects
}

// droppedObjects belong to the ManagedResource of a UID.
type droppedObjects struct {
	uid  types.UID
	keys map[object.Key]struct{}
}

// NewDeleted returns an empty memory.
func NewDeleted() *Deleted {
	return &Deleted{byOwner: map[types.NamespacedName]droppedObjects{}}
}

// Add adds objects of the ManagedResource with this UID that are gone or released.
func (d *Deleted) Add(owner types.NamespacedName, uid types.UID, gone []object.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := map[object.Key]struct{}{}
	for key := range d.of(owner, uid) {
		keys[key] = struct{}{}
	}
	for _, key := range gone {
		keys[key] = struct{}{}
	}
	delete(d.byOwner, owner)
	if len(keys) > 0 {
		d.byOwner[owner] = droppedObjects{uid: uid, keys: keys}
	}
}

// Keys returns the objects of the ManagedResource with this UID that are gone or released.
func (d *Deleted) Keys(owner types.NamespacedName, uid types.UID) []object.Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.of(owner, uid)))
}

// Has reports whether an object of a ManagedResource that is being deleted is gone or released.
func (d *Deleted) Has(owner types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byOwner[owner].keys) > 0
}

func (d *Deleted) of(owner types.NamespacedName, uid types.UID) map[object.Key]struct{} {
	if known := d.byOwner[owner]; known.uid == uid {
		return known.keys
	}
	return nil
}

// Forget drops what is remembered of a ManagedResource.
func (d *Deleted) Forget(owner types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byOwner, owner)
}
