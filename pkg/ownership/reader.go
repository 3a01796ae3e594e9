package ownership

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Reader answers questions about owners from the source cluster's cache and the claims of this process, for one reconcile of one
// ManagedResource. It reads each other ManagedResource once.
type Reader struct {
	self   resourcesv1alpha1.Origin
	class  string
	claims *Claims
	source client.Reader
	// holds reports whether an object is in the inventory of a ManagedResource.
	holds func(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool
	// read are the ManagedResources that were looked at; nil for those that do not exist.
	read map[types.NamespacedName]*resourcesv1alpha1.ManagedResource
}

// NewReader returns a reader for the ManagedResource that self names. Holds reports whether an object is in the inventory of another one.
func NewReader(self resourcesv1alpha1.Origin, class string, claims *Claims, source client.Reader,
	holds func(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool,
) *Reader {
	return &Reader{self: self, class: class, claims: claims, source: source, holds: holds, read: map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}}
}

// Owners answers questions about owners from the source cluster's cache and the claims of this process.
func (r *Reader) Owners(ctx context.Context) Owners {
	return Owners{
		Self:       r.self,
		Stands:     func(owner resourcesv1alpha1.Origin, key object.Key) bool { return r.stands(ctx, owner, key) },
		FirstClaim: r.claims.First,
		Successors: func(key object.Key, origin types.NamespacedName) []types.NamespacedName {
			return r.successors(ctx, key, origin)
		},
	}
}

// successors returns the other ManagedResources of this process that claim an object and do not disown it, and are there to stay or own it.
func (r *Reader) successors(ctx context.Context, key object.Key, origin types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(r.claims.others(key, r.self.Owner), func(owner types.NamespacedName) bool {
		other, err := r.Other(ctx, owner)
		return owner != origin && err == nil && (other == nil || other.DeletionTimestamp != nil)
	})
}

// Other returns another ManagedResource, nil if there is none. It reads each one once in a pass.
func (r *Reader) Other(ctx context.Context, name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	if mr, known := r.read[name]; known {
		return mr, nil
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	err := r.source.Get(ctx, name, mr)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ManagedResource %s: %w", name, err)
	}
	if err != nil {
		mr = nil
	}
	r.read[name] = mr
	return mr, nil
}

// stands reports whether an origin's ManagedResource exists and wants the object, or holds it and may want it. One that cannot be seen
// from here is taken to exist.
func (r *Reader) stands(ctx context.Context, owner resourcesv1alpha1.Origin, key object.Key) bool {
	if owner.ClusterID != r.self.ClusterID {
		return true
	}
	if claims, disowns := r.claims.has(key, owner.Owner); claims {
		return !disowns
	}
	other, err := r.Other(ctx, owner.Owner)
	if err != nil || other == nil {
		return err != nil
	}
	if resourcesv1alpha1.HasClass(other, r.class) {
		return false // it would have a claim
	}
	return r.holds(other, key)
}
