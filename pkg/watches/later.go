package watches

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// laterPriority is below that of other requests, and above that of the objects that exist when a controller starts
// (handler.LowPriority of controller-runtime).
const laterPriority = -1

// SelfLater returns a source like Self. Created objects for which later is true are reconciled when no other request is left, so that many new
// objects keep neither each other nor changes of others waiting.
func SelfLater(in cache.Cache, object client.Object, later func(client.Object) bool, changed ...predicate.Predicate) source.SyncingSource {
	return Kind(in, object, &newLast{later: later}, changed...)
}

// newLast is the handler of SelfLater.
type newLast struct {
	handler.EnqueueRequestForObject

	later func(client.Object) bool
}

// Create implements handler.EventHandler.
func (n *newLast) Create(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	ordered, is := queue.(priorityqueue.PriorityQueue[reconcile.Request])
	if !is || e.IsInInitialList || !n.later(e.Object) {
		n.EnqueueRequestForObject.Create(ctx, e, queue)
		return
	}
	ordered.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(laterPriority)}, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
}
