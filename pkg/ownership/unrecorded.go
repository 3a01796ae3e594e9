package ownership

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Unrecorded stores which objects were written for a ManagedResource since its status was last stored. A pass may end
// between its writes and the write of the status. The digests in the status may then not match the objects. The owned
// fields do not reveal this, because the same fields may have other values. It is safe for concurrent use.
type Unrecorded struct {
	mu sync.Mutex
	// byOwner has no entry for a ManagedResource whose status this process has neither stored nor confirmed, because
	// another process may have written its objects.
	byOwner map[types.NamespacedName]map[object.Key]struct{}
}

// NewUnrecorded returns an empty store.
func NewUnrecorded() *Unrecorded {
	return &Unrecorded{byOwner: map[types.NamespacedName]map[object.Key]struct{}{}}
}

// Add adds an object that is about to be written. It does nothing for an unknown ManagedResource, because all objects
// of such a ManagedResource count as written.
func (u *Unrecorded) Add(owner types.NamespacedName, key object.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	written, known := u.byOwner[owner]
	if !known {
		return
	}
	if written == nil {
		written = map[object.Key]struct{}{}
		u.byOwner[owner] = written
	}
	written[key] = struct{}{}
}

// Has reports whether an object was written, or may have been written by another process, since the status was last
// stored.
func (u *Unrecorded) Has(owner types.NamespacedName, key object.Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	written, known := u.byOwner[owner]
	_, has := written[key]
	return has || !known
}

// Record replaces the objects of a ManagedResource whose status was stored. Only the objects whose write failed remain,
// because a failed write may still have had an effect.
func (u *Unrecorded) Record(owner types.NamespacedName, failed []object.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byOwner[owner] = nil
	for _, key := range failed {
		if u.byOwner[owner] == nil {
			u.byOwner[owner] = map[object.Key]struct{}{}
		}
		u.byOwner[owner][key] = struct{}{}
	}
}

// Confirm records that all objects of a ManagedResource match its stored status, unless the ManagedResource is already
// known.
func (u *Unrecorded) Confirm(owner types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.byOwner[owner]; !known {
		u.byOwner[owner] = nil
	}
}

// Forget deletes the entries of a ManagedResource.
func (u *Unrecorded) Forget(owner types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byOwner, owner)
}
