package ownership

import (
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Owners determines the owner of an object.
type Owners struct {
	Self resourcesv1alpha1.Origin
	// StillOwns reports whether the ManagedResource of an origin exists, and wants the object or has it in its inventory.
	StillOwns func(owner resourcesv1alpha1.Origin, key object.Key) bool
	// FirstClaim returns the ManagedResource with the first claim on an object that does not exist.
	FirstClaim func(key object.Key) (types.NamespacedName, bool)
	// Successors returns the other ManagedResources to which an object can be handed over once they have recorded it. The
	// origin is the one in the annotation of the object, if any.
	Successors func(key object.Key, origin types.NamespacedName) []types.NamespacedName
}

// OtherOwner returns the ManagedResource that owns a live object, if it is another one. An origin with the same name in
// another source cluster is the same ManagedResource, which was moved or got a cluster identity.
func (o Owners) OtherOwner(key object.Key, observation live.Observation) (string, bool) {
	if observation.Origin == "" || observation.Origin == o.Self.String() {
		return "", false
	}
	owner, ok := resourcesv1alpha1.ParseOrigin(observation.Origin)
	if !ok || owner.Owner == o.Self.Owner || !o.StillOwns(owner, key) {
		return "", false
	}
	return owner.String(), true
}

// Ours reports whether a live object is the recorded one. This is the case if its origin is this ManagedResource. If
// the object has lost the origin annotation, it is sufficient that we own fields of it, that it has our label, or that
// it was created without our labels and annotations because its manifest requests to ignore updates.
func (o Owners) Ours(entry resourcesv1alpha1.ObjectReference, observation live.Observation, managedBy string) bool {
	if observation.Origin == o.Self.String() {
		return true
	}
	if owner, ok := resourcesv1alpha1.ParseOrigin(observation.Origin); ok {
		// The owner does not exist and no other client deletes the object. It is recorded here, so it belongs to this
		// ManagedResource.
		return owner.Owner == o.Self.Owner || observation.OwnedDigest != "" && observation.ManagedBy == managedBy
	}
	return observation.OwnedDigest != "" || observation.ManagedBy == managedBy ||
		applyoptions.Of(entry.Annotations).CreateOnly
}
