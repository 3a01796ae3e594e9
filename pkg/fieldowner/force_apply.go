package fieldowner

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ForceApply applies an object that belongs to the resource-manager so that it matches the desired state, regardless of
// other writers.
type ForceApply[T metav1.Object] struct {
	// Apply applies the object by server-side apply with force and returns what is live then.
	Apply func() (T, error)
	// Patch sends a JSON patch to the live object.
	Patch func(live T, patch []byte) error
	// AsDesired reports whether the live object matches the desired state.
	AsDesired func(live T) bool
	// Keep are the fields that other managers may own.
	Keep []Pattern
}

// Run applies the object. If the live object then differs because others own fields of it, the resource-manager takes
// over these fields and applies the object again. Run returns the resulting live object, and whether it matches the
// desired state. It does not match if, for example, a mutating webhook changes the object at every write. Errors are
// those of Apply and Patch, and those of managedFields that cannot be read.
func (f ForceApply[T]) Run() (live T, asDesired bool, err error) {
	if live, err = f.Apply(); err != nil || f.AsDesired(live) {
		return live, err == nil, err
	}
	entries, changed, err := TakeOverAll(live.GetManagedFields(), f.Keep)
	if err != nil || !changed {
		return live, false, err
	}
	patch, err := PatchFor(entries, live.GetResourceVersion())
	if err != nil {
		return live, false, err
	}
	if err := f.Patch(live, patch); err != nil {
		return live, false, fmt.Errorf("take over the fields of other owners: %w", err)
	}
	if live, err = f.Apply(); err != nil {
		return live, false, err
	}
	return live, f.AsDesired(live), nil
}
