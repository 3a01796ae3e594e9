package managedresource

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// dropped remembers which recorded objects of ManagedResources that are being deleted are gone or released. The status is not written
// for each of them, so the stored inventory names more than there is: without this, every look would ask for all of it again. It is
// safe for concurrent use.
type dropped struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]droppedObjects
}

// droppedObjects belong to the ManagedResource of a UID.
type droppedObjects struct {
	uid  types.UID
	keys map[object.Key]struct{}
}

func newDropped() *dropped {
	return &dropped{byOwner: map[types.NamespacedName]droppedObjects{}}
}

// note takes in what is left of the recorded objects of a ManagedResource.
func (d *dropped) note(mr *resourcesv1alpha1.ManagedResource, remaining inventory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	owner := client.ObjectKeyFromObject(mr)
	keys := map[object.Key]struct{}{}
	for key := range d.of(owner, mr.UID) {
		keys[key] = struct{}{}
	}
	for _, entry := range mr.Status.Resources {
		key := refOfEntry(entry).Key()
		if _, remains := remaining[key]; !remains {
			keys[key] = struct{}{}
		}
	}
	delete(d.byOwner, owner)
	if len(keys) > 0 {
		d.byOwner[owner] = droppedObjects{uid: mr.UID, keys: keys}
	}
}

// leaveOut takes out of an inventory what was dropped.
func (d *dropped) leaveOut(mr *resourcesv1alpha1.ManagedResource, recorded inventory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.of(client.ObjectKeyFromObject(mr), mr.UID) {
		delete(recorded, key)
	}
}

func (d *dropped) of(owner types.NamespacedName, uid types.UID) map[object.Key]struct{} {
	if known := d.byOwner[owner]; known.uid == uid {
		return known.keys
	}
	return nil
}

func (d *dropped) forget(owner types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byOwner, owner)
}
