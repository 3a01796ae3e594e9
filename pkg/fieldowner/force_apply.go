package fieldowner

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ForceApply describes how to make an object that belongs to the resource-manager as desired, whatever others write.
type ForceApply[T metav1.Object] struct {
	// Apply applies the object by server-side apply with force and returns what is live then.
	Apply func() (T, error)
	// Patch sends a JSON patch to the live object.
	Patch func(live T, patch []byte) error
	// AsDesired reports whether nothing of a live object differs from what is desired.
	AsDesired func(live T) bool
	// Keep are the fields that others may own.
	Keep []Pattern
}

// Run applies the object. If what is live then differs, since others own fields of it, their fields go to the resource-manager and the
// object is applied again. It returns what is live at the end, and whether that is as desired: it is not if something, such as a mutating
// webhook, changes the object whenever it is written. Errors are those of Apply and Patch, and those of field managers that cannot be read.
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
		return live, false, fmt.Errorf("take over the fields of others: %w", err)
	}
	if live, err = f.Apply(); err != nil {
		return live, false, err
	}
	return live, f.AsDesired(live), nil
}
