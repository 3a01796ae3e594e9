package highavailability

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// allNodes is the only request. It covers all nodes.
var allNodes = reconcile.Request{NamespacedName: client.ObjectKey{Name: "nodes"}}

// AddToManager registers the controller.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Kind(r.Nodes, &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(context.Context, *corev1.Node) []reconcile.Request { return []reconcile.Request{allNodes} }), joinsOrLeaves())).
		// Once at startup, even without nodes.
		WatchesRawSource(watches.AtStart(allNodes)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             requeue.Backoff(),
		}).
		Complete(r)
}

// joinsOrLeaves passes nodes that join or leave.
func joinsOrLeaves() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(event.TypedUpdateEvent[*corev1.Node]) bool { return false },
	}
}
