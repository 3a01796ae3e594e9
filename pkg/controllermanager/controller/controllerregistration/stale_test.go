package controllerregistration

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staleCache writes to an API server, but does not know the objects that refer to others. If it is empty, it knows no object.
type staleCache struct {
	client.Client

	empty bool
}

// List implements [client.Client].
func (staleCache) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// Get implements [client.Client].
func (s staleCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if s.empty {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return s.Client.Get(ctx, key, object, options...)
}
