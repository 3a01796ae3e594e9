package ownership

import (
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Owners answers who owns an object.
type Owners struct {
	Self resourcesv1alpha1.Origin
	// Stands reports whether the ManagedResource that an origin names exists and wants or holds the object.
	Stands func(owner resourcesv1alpha1.Origin, key object.Key) bool
	// FirstClaim returns the ManagedResource that was the first to want an object that does not exist.
	FirstClaim func(key object.Key) (types.NamespacedName, bool)
	// Successors returns the other ManagedResources that an object can be left to once they have recorded it. The origin is the one
	// that the object names, if any.
	Successors func(key object.Key, origin types.NamespacedName) []types.NamespacedName
}

// OtherOwner returns the ManagedResource that owns a live object, if it is another one. An origin of the same name in
// another source cluster is the same ManagedResource, which was moved or got a cluster identity.
func (o Owners) OtherOwner(key object.Key, observation live.Observation) (string, bool) {
	if observation.Origin == "" || observation.Origin == o.Self.String() {
		return "", false
	}
	owner, ok := resourcesv1alpha1.ParseOrigin(observation.Origin)
	if !ok || owner.Owner == o.Self.Owner || !o.Stands(owner, key) {
		return "", false
	}
	return owner.String(), true
}

// Ours reports whether a live object is the one that was recorded: its origin is this ManagedResource or, if it lost that
// annotation, we own fields of it, it has our label, or it was created without any mark because it asked to be ignored.
func (o Owners) Ours(entry resourcesv1alpha1.ObjectReference, observation live.Observation, managedBy string) bool {
	if observation.Origin == o.Self.String() {
		return true
	}
	if owner, ok := resourcesv1alpha1.ParseOrigin(observation.Origin); ok {
		// The owner is gone, and no one else deletes the object: we do, as it is recorded.
		return owner.Owner == o.Self.Owner || observation.OwnedDigest != "" && observation.ManagedBy == managedBy
	}
	return observation.OwnedDigest != "" || observation.ManagedBy == managedBy ||
		applyoptions.Of(entry.Annotations).CreateOnly
}
