package extension

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	finalizers "github.com/trellis-k8s/trellis/pkg/finalizer"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// protectSecret adds a finalizer to the Secret with the credentials, because the deletion of the object needs it. If the
// Secret does not exist, the actuator reports the error.
func (c *controllerOf[T]) protectSecret(ctx context.Context, object T) error {
	secret, err := c.secretOf(ctx, object)
	if err != nil || secret == nil || secret.DeletionTimestamp != nil {
		return err
	}
	return c.finalizers().Add(ctx, secret, c.kind.finalizer)
}

// releaseSecret removes the finalizer from the Secret, unless another object of the kind needs it.
func (c *controllerOf[T]) releaseSecret(ctx context.Context, object T) error {
	secret, err := c.secretOf(ctx, object)
	if err != nil || secret == nil {
		return err
	}
	_, err = c.finalizers().Release(ctx, secret, c.kind.finalizer, func(ctx context.Context, reader client.Reader) ([]string, error) {
		return c.othersWithSecret(ctx, reader, object)
	})
	return err
}

// othersWithSecret returns the names of the other objects of the kind that need the Secret of an object.
func (c *controllerOf[T]) othersWithSecret(ctx context.Context, reader client.Reader, object T) ([]string, error) {
	ref := secretRef(object)
	list, err := c.kind.newList(c.client.Scheme())
	if err != nil {
		return nil, err
	}
	if err := reader.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list the objects that refer to Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	var names []string
	err = meta.EachListItem(list, func(item runtime.Object) error {
		other, is := item.(extensionsv1alpha1.Object)
		if is && other.GetUID() != object.GetUID() && controllerutil.ContainsFinalizer(other, c.kind.finalizer) {
			if theirs := secretRef(other); theirs != nil && *theirs == *ref {
				names = append(names, other.GetName())
			}
		}
		return nil
	})
	return names, err
}

// secretOf returns the metadata of the Secret to which an object refers, or nil if it does not exist. It does not read the data.
func (c *controllerOf[T]) secretOf(ctx context.Context, object T) (*metav1.PartialObjectMetadata, error) {
	ref := secretRef(object)
	if ref == nil {
		return nil, nil
	}
	secret := watches.MetadataOf("Secret")
	err := c.uncached.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return secret, nil
}

func (c *controllerOf[T]) finalizers() finalizers.Holder {
	return finalizers.Holder{Client: c.client, Uncached: c.uncached, Owner: fieldManager}
}
