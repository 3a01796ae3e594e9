package protection

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// reconciler keeps the objects of a row.
type reconciler struct {
	controller.Protector

	row row
}

// Reconcile adds the finalizer to an object. It removes it from an object that is being deleted once nothing refers to it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, ok := r.row.object.DeepCopyObject().(client.Object)
	if !ok {
		return reconcile.Result{}, fmt.Errorf("a %T has no metadata", r.row.object)
	}
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() == nil {
		return reconcile.Result{}, r.Add(ctx, object, r.row.finalizer)
	}
	return reconcile.Result{}, r.Release(ctx, object, r.row.finalizer, func(ctx context.Context, reader client.Reader) ([]string, error) {
		return r.row.usersOf(ctx, reader, request.NamespacedName)
	})
}

// usersOf returns the objects that refer to an object, as texts.
func (r row) usersOf(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]string, error) {
	var found []string
	for _, user := range r.users {
		list, ok := user.list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("a %T is not a list", user.list)
		}
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		if user.local {
			options = append(options, client.InNamespace(key.Namespace))
		}
		if err := reader.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list the %ss that may refer to %s: %w", user.kind, key, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("a %T has no metadata", item)
			}
			if slices.Contains(user.refers(object), key) {
				found = append(found, user.kind+" "+textOf(object))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// textOf names an object.
func textOf(object client.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
