package extension

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// clusterEvents triggers objects of a Shoot that are due when the Cluster is created, or when restrictions of the Shoot change.
func (c *controllerOf[T]) clusterEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { c.enqueueDue(ctx, e.Object.GetName(), q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if restrictionsOf(e.ObjectOld) != restrictionsOf(e.ObjectNew) {
				c.enqueueDue(ctx, e.ObjectNew.GetName(), q)
			}
		},
	}
}

// restrictions are the properties of a Shoot that determine whether and how its objects are reconciled.
type restrictions struct{ unreadable, failed, ignored, force bool }

// restrictionsOf returns the restrictions of the Shoot in a Cluster.
func restrictionsOf(object client.Object) restrictions {
	cluster, is := object.(*extensionsv1alpha1.Cluster)
	if !is {
		return restrictions{unreadable: true}
	}
	decoded, err := DecodeCluster(cluster)
	if err != nil {
		return restrictions{unreadable: true}
	}
	return restrictions{failed: decoded.Failed(), ignored: decoded.Ignored(), force: decoded.ForceDeletion()}
}

// enqueueDue adds the objects of a Cluster that are due.
func (c *controllerOf[T]) enqueueDue(ctx context.Context, name string, q queue) {
	list, err := c.kind.newList(c.client.Scheme())
	if err == nil {
		err = c.client.List(ctx, list, c.ofCluster(name)...)
	}
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object, is := item.(extensionsv1alpha1.Object)
			if !is || clusterName(object) != name || !Responsible(object, c.options.Type, c.options.Classes) {
				return nil
			}
			if begins(object, c.options.IgnoreOperationAnnotation) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
			return nil
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the objects of a Cluster", "cluster", name)
	}
}

// ofCluster restricts a list to objects that can belong to a Cluster.
func (c *controllerOf[T]) ofCluster(name string) []client.ListOption {
	if c.kind.Kind == "BackupEntry" {
		return nil
	}
	return []client.ListOption{client.InNamespace(name)}
}
