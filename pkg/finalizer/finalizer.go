// Package finalizer adds finalizers to objects that others use, and releases them when nothing uses them any more.
package finalizer

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Users returns descriptions of the objects that use an object. It reads them with the given reader.
type Users func(ctx context.Context, reader client.Reader) ([]string, error)

// Holder adds and releases finalizers.
type Holder struct {
	// Client may read from a cache. Uncached reads from the API server.
	Client   client.Client
	Uncached client.Reader
	// Owner is the field manager of the writes.
	Owner client.FieldOwner
}

// Add adds a finalizer to an object if it is missing. It fails if the object has changed since it was read.
func (h Holder) Add(ctx context.Context, object client.Object, finalizer string) error {
	return h.patch(ctx, object, func() bool { return controllerutil.AddFinalizer(object, finalizer) })
}

// Release removes a finalizer from an object that nothing uses. Otherwise it returns the users, sorted. A user that the cache
// contains suffices to keep the object. Only the API server knows that there are no users: a cache may lack new ones. Release
// fails if the object has changed since it was read.
func (h Holder) Release(ctx context.Context, object client.Object, finalizer string, users Users) ([]string, error) {
	if !controllerutil.ContainsFinalizer(object, finalizer) {
		return nil, nil
	}
	for _, reader := range []client.Reader{h.Client, h.Uncached} {
		found, err := users(ctx, reader)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			slices.Sort(found)
			return found, nil
		}
	}
	return nil, h.patch(ctx, object, func() bool { return controllerutil.RemoveFinalizer(object, finalizer) })
}

// patch patches an object if change changed its finalizers.
func (h Holder) patch(ctx context.Context, object client.Object, change func() bool) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("the copy of a %T is not an object", object)
	}
	if !change() {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(h.Client.Patch(ctx, object, patch, h.Owner)); err != nil {
		return fmt.Errorf("change the finalizers of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
}
