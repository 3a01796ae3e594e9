package managedresource

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// An object that moves from one ManagedResource to another one is in a stored inventory at every instant: it leaves the one only when
// the API server says that the other one has recorded it, and does not disown it (claims.go). Who waits for that is woken by the other
// one's record, by the end of its claim, or by its end.

// handOver releases the objects among the changes that an heir has recorded. The others stay in the inventory.
func (p *pass) handOver(ctx context.Context, changes []change) {
	recorded := map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}
	for i := range changes {
		change := &changes[i]
		if change.action != actionHandOver {
			continue
		}
		for _, heir := range change.heirs {
			mr, known := recorded[heir]
			if !known {
				mr = &resourcesv1alpha1.ManagedResource{}
				if err := p.Direct.Get(ctx, heir, mr); err != nil && !apierrors.IsNotFound(err) {
					change.err = fmt.Errorf("%s is kept: look whether ManagedResource %s has it in its inventory: %w", change.Ref, heir, err)
					continue
				}
				recorded[heir] = mr
			}
			if records(mr, change.Key()) {
				change.action, change.err = actionRelease, nil
				change.reason = "it is in the inventory of ManagedResource " + heir.String()
				break
			}
		}
	}
}

// records reports whether an object is in the inventory of a ManagedResource. Without a namespace it has none: then one that was recorded
// before that was known does not count.
func records(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool {
	return slices.ContainsFunc(mr.Status.Resources, func(entry resourcesv1alpha1.ObjectReference) bool {
		recorded := refOfEntry(entry).Key()
		if key.Namespace == "" {
			recorded.Namespace = ""
		}
		return recorded == key
	})
}
