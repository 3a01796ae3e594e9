package ownership

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Unrecorded remembers which objects were written for a ManagedResource since its status was stored last. What the status says was applied to
// them need not be what they are, as a pass may end between its writes and that of the status. Fields and their owners do not show it: the
// same fields may have other values. It is safe for concurrent use.
type Unrecorded struct {
	mu sync.Mutex
	// byOwner has no entry for a ManagedResource whose status this process did not store or confirm: another process may have written.
	byOwner map[types.NamespacedName]map[object.Key]struct{}
}

// NewUnrecorded returns an empty memory.
func NewUnrecorded() *Unrecorded {
	return &Unrecorded{byOwner: map[types.NamespacedName]map[object.Key]struct{}{}}
}

// Add adds an object that is about to be written. Nothing changes for a ManagedResource that is not known, as all its objects count as
// written.
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

// Has reports whether an object was written, or may have been written by another process, since the status was stored last.
func (u *Unrecorded) Has(owner types.NamespacedName, key object.Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	written, known := u.byOwner[owner]
	_, has := written[key]
	return has || !known
}

// Record replaces the objects of a ManagedResource when its status was stored: only those are left whose write failed, as it may
// have had an effect all the same.
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

// Confirm makes a ManagedResource known whose objects all are as its stored status says.
func (u *Unrecorded) Confirm(owner types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.byOwner[owner]; !known {
		u.byOwner[owner] = nil
	}
}

// Forget drops what is remembered of a ManagedResource.
func (u *Unrecorded) Forget(owner types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byOwner, owner)
}
