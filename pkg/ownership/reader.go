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

// Reader determines owners from the cache of the source cluster and from the claims of this process, for one reconcile
// of one ManagedResource. It reads each other ManagedResource once.
type Reader struct {
	self   resourcesv1alpha1.Origin
	class  string
	claims *Claims
	source client.Reader
	// holds reports whether an object is in the inventory of a ManagedResource.
	holds func(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool
	// read are the ManagedResources that were read. It contains nil for those that do not exist.
	read map[types.NamespacedName]*resourcesv1alpha1.ManagedResource
}

// NewReader returns a reader for the ManagedResource self. Holds reports whether an object is in the inventory of
// another ManagedResource.
func NewReader(self resourcesv1alpha1.Origin, class string, claims *Claims, source client.Reader,
	holds func(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool,
) *Reader {
	return &Reader{
		self: self, class: class, claims: claims, source: source, holds: holds,
		read: map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{},
	}
}

// Owners returns the functions that determine owners.
func (r *Reader) Owners(ctx context.Context) Owners {
	return Owners{
		Self:       r.self,
		StillOwns:  func(owner resourcesv1alpha1.Origin, key object.Key) bool { return r.stillOwns(ctx, owner, key) },
		FirstClaim: r.claims.First,
		Successors: func(key object.Key, origin types.NamespacedName) []types.NamespacedName {
			return r.successors(ctx, key, origin)
		},
	}
}

// successors returns the other ManagedResources of this process that claim an object and do not disown it. A
// ManagedResource that does not exist or is being deleted counts only if it is the origin of the object.
func (r *Reader) successors(ctx context.Context, key object.Key, origin types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(r.claims.others(key, r.self.Owner), func(owner types.NamespacedName) bool {
		other, err := r.Other(ctx, owner)
		return owner != origin && err == nil && (other == nil || other.DeletionTimestamp != nil)
	})
}

// Other returns another ManagedResource. It is nil if the ManagedResource does not exist. Each one is read once in a
// pass.
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

// stillOwns reports whether the ManagedResource of an origin exists, and wants the object or has it in its inventory
// without disowning it. A ManagedResource that cannot be read from here is assumed to exist.
func (r *Reader) stillOwns(ctx context.Context, owner resourcesv1alpha1.Origin, key object.Key) bool {
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
		return false // otherwise, it would have a claim
	}
	return r.holds(other, key)
}
