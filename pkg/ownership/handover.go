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

// An object that moves from one ManagedResource to another is in a stored inventory at any time: the former owner
// removes it from its inventory only after the API server has returned an inventory of a successor that contains the
// object, and the successor does not disown it (claims.go). The former owner waits for that. It is enqueued when the
// successor records the object, when the successor's claim ends, or when the successor is deleted.

// Inventories reads the inventories of successors from the API server, each of them once.
type Inventories struct {
	direct client.Reader
	read   map[types.NamespacedName]*resourcesv1alpha1.ManagedResource
}

// NewInventories returns a reader of inventories for one reconcile.
func NewInventories(direct client.Reader) *Inventories {
	return &Inventories{direct: direct, read: map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}}
}

// RecordedBy returns the first of the successors with the object in its inventory. If there is none, found is false.
// The error is set if an inventory could not be read.
func (i *Inventories) RecordedBy(ctx context.Context, ref object.Ref, successors []types.NamespacedName,
) (successor types.NamespacedName, found bool, err error) {
	for _, successor := range successors {
		mr, known := i.read[successor]
		if !known {
			mr = &resourcesv1alpha1.ManagedResource{}
			if getErr := i.direct.Get(ctx, successor, mr); getErr != nil && !apierrors.IsNotFound(getErr) {
				err = fmt.Errorf("%s is kept: check whether it is in the inventory of ManagedResource %s: %w", ref, successor, getErr)
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

// records reports whether an object is in the inventory of a ManagedResource. The key of a cluster-scoped object also
// matches an entry with a namespace, which was recorded before the scope was known.
func records(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool {
	return slices.ContainsFunc(mr.Status.Resources, func(entry resourcesv1alpha1.ObjectReference) bool {
		return entry.Name == key.Name && entry.Kind == key.Kind && (key.Namespace == "" || entry.Namespace == key.Namespace) &&
			schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind).Group == key.Group
	})
}
