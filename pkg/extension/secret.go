package extension

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// protectSecret adds a finalizer to the Secret with the credentials, because the deletion of the object needs it. If the
// Secret does not exist, the actuator reports the error.
func (c *controllerOf[T]) protectSecret(ctx context.Context, object T) error {
	return c.changeSecret(ctx, object, func(secret client.Object) bool {
		return secret.GetDeletionTimestamp() == nil && controllerutil.AddFinalizer(secret, c.kind.finalizer)
	})
}

// releaseSecret removes the finalizer from the Secret, unless another object of the kind needs it.
func (c *controllerOf[T]) releaseSecret(ctx context.Context, object T) error {
	ref := secretRef(object)
	if ref == nil {
		return nil
	}
	list, err := c.kind.newList(c.client.Scheme())
	if err != nil {
		return err
	}
	if err := c.client.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		return fmt.Errorf("list the objects that refer to Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	used := false
	err = meta.EachListItem(list, func(item runtime.Object) error {
		other, is := item.(extensionsv1alpha1.Object)
		if is && other.GetUID() != object.GetUID() && controllerutil.ContainsFinalizer(other, c.kind.finalizer) {
			theirs := secretRef(other)
			used = used || theirs != nil && *theirs == *ref
		}
		return nil
	})
	if err != nil || used {
		return err
	}
	return c.changeSecret(ctx, object, func(secret client.Object) bool {
		return controllerutil.RemoveFinalizer(secret, c.kind.finalizer)
	})
}

// changeSecret changes the metadata of the Secret to which an object refers, if it exists. It does not read the data.
func (c *controllerOf[T]) changeSecret(ctx context.Context, object T, change func(client.Object) bool) error {
	ref := secretRef(object)
	if ref == nil {
		return nil
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.uncached.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	patch, err := lockedPatch(secret)
	if err != nil || !change(secret) {
		return err
	}
	if err := client.IgnoreNotFound(c.client.Patch(ctx, secret, patch, client.FieldOwner(fieldManager))); err != nil {
		return fmt.Errorf("write the finalizers of Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return nil
}
