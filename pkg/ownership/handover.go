package ownership

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// An object that moves from one ManagedResource to another one is in a stored inventory at every instant: it leaves the one only when
// the API server says that the other one has recorded it, and does not disown it (claims.go). Who waits for that is woken by the other
// one's record, by the end of its claim, or by its end.

// Inventories reads the inventories of successors from the API server, each once.
type Inventories struct {
	direct client.Reader
	read   map[types.NamespacedName]*resourcesv1alpha1.ManagedResource
}

// NewInventories returns a reader of inventories for one reconcile.
func NewInventories(direct client.Reader) *Inventories {
	return &Inventories{direct: direct, read: map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}}
}

// RecordedBy returns the first of the successors that has an object in its inventory. Without one, found is false, and the error says which
// inventory could not be read.
func (i *Inventories) RecordedBy(ctx context.Context, ref object.Ref, successors []types.NamespacedName) (successor types.NamespacedName, found bool, err error) {
	for _, successor := range successors {
		mr, known := i.read[successor]
		if !known {
			mr = &resourcesv1alpha1.ManagedResource{}
			if getErr := i.direct.Get(ctx, successor, mr); getErr != nil && !apierrors.IsNotFound(getErr) {
				err = fmt.Errorf("%s is kept: look whether ManagedResource %s has it in its inventory: %w", ref, successor, getErr)
				continue
			}
			i.read[successor] = mr
		}
		if records(mr, ref.Key()) {
			return successor, true, nil
		}
	}
	return types.NamespacedName{}, false, err
}

// records reports whether an object is in the inventory of a ManagedResource. Without a namespace it has none: then one that was recorded
// before that was known does not count.
func records(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool {
	return slices.ContainsFunc(mr.Status.Resources, func(entry resourcesv1alpha1.ObjectReference) bool {
		return entry.Name == key.Name && entry.Kind == key.Kind && (key.Namespace == "" || entry.Namespace == key.Namespace) &&
			schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind).Group == key.Group
	})
}
