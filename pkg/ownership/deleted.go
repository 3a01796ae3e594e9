package ownership

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Deleted stores which recorded objects of ManagedResources that are being deleted were deleted or released. The status
// is not written for each of them, so the stored inventory contains more objects than exist. Without this store, every
// pass would request all of them again. It is safe for concurrent use.
type Deleted struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]droppedObjects
}

// droppedObjects are objects of the ManagedResource with a UID.
type droppedObjects struct {
	uid  types.UID
	keys map[object.Key]struct{}
}

// NewDeleted returns an empty store.
func NewDeleted() *Deleted {
	return &Deleted{byOwner: map[types.NamespacedName]droppedObjects{}}
}

// Add adds deleted or released objects of the ManagedResource with this UID.
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

// Keys returns the deleted or released objects of the ManagedResource with this UID.
func (d *Deleted) Keys(owner types.NamespacedName, uid types.UID) []object.Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.of(owner, uid)))
}

// Has reports whether an object of a ManagedResource that is being deleted was deleted or released.
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

// Forget deletes the entries of a ManagedResource.
func (d *Deleted) Forget(owner types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byOwner, owner)
}
