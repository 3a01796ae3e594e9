package breakglass

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// ErrInUse is returned if ManagedResources still exist. They could not be deleted without a resource-manager.
var ErrInUse = errors.New("the resource-manager can be removed only when no ManagedResource is left")

// Remove deletes the objects of the resource-manager, which does not delete them itself, in reverse apply order. It
// returns the names of those that still exist. A flow repeats the call until none is left. The objects are those of the
// flow's bundle. While any ManagedResource exists, Remove deletes nothing and returns an error that wraps ErrInUse.
func Remove(ctx context.Context, c client.Client, uncached client.Reader, objects []client.Object) (left []string, err error) {
	if err := NoneLeft(ctx, uncached); err != nil {
		return nil, err
	}
	sorted := slices.Clone(objects)
	var errs []error
	for i, object := range sorted {
		kind, err := apiutil.GVKForObject(object, c.Scheme())
		if err != nil {
			return nil, fmt.Errorf("the kind of object %s: %w", object.GetName(), err)
		}
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(kind)
		metadata.SetNamespace(object.GetNamespace())
		metadata.SetName(object.GetName())
		sorted[i] = metadata
	}
	slices.SortStableFunc(sorted, func(a, b client.Object) int { // the reverse of the order in which they are applied
		first, second := a.GetObjectKind().GroupVersionKind().GroupKind(), b.GetObjectKind().GroupVersionKind().GroupKind()
		switch {
		case ssa.IsLessThan(second, first):
			return -1
		case ssa.IsLessThan(first, second):
			return 1
		}
		return 0
	})
	for _, object := range sorted {
		exists, err := remove(ctx, c, uncached, object)
		if err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", nameOf(object), err))
		}
		if exists {
			left = append(left, nameOf(object))
		}
	}
	return left, errors.Join(errs...)
}

// remove deletes an object and reports whether it still exists. It sends no write for an object that does not exist or
// is already being deleted.
func remove(ctx context.Context, c client.Client, uncached client.Reader, object client.Object) (exists bool, err error) {
	err = uncached.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return true, err
	case object.GetDeletionTimestamp() != nil:
		return true, nil
	}
	uid := object.GetUID()
	err = c.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	return true, client.IgnoreNotFound(err)
}

// NoneLeft returns an error that wraps [ErrInUse] if a ManagedResource exists in the cluster. The reader must not be a cache.
func NoneLeft(ctx context.Context, uncached client.Reader) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResourceList"))
	switch err := uncached.List(ctx, list, client.Limit(1)); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // the definition does not exist any more
		return nil
	case err != nil:
		return fmt.Errorf("list ManagedResources: %w", err)
	case len(list.Items) > 0:
		return fmt.Errorf("ManagedResource %s/%s exists: %w", list.Items[0].Namespace, list.Items[0].Name, ErrInUse)
	}
	return nil
}
