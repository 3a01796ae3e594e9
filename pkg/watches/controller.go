package watches

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Controller is a controller that reconciles the objects that its watches request.
type Controller struct {
	// Name of the controller in logs and metrics. It is unique in a process.
	Name       string
	Reconciler reconcile.Reconciler
	// Workers is how many objects are reconciled concurrently. The default is 1.
	Workers int
	// RateLimiter decides when a failed reconcile is repeated. The default is the one of controller-runtime.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// AddTo adds the controller with its watches to a manager. It returns the controller for watches that are added later.
func (c Controller) AddTo(mgr manager.Manager, watches ...source.Source) (controller.Controller, error) {
	built, err := controller.New(c.Name, mgr, controller.Options{
		Reconciler: c.Reconciler, MaxConcurrentReconciles: c.Workers, RateLimiter: c.RateLimiter, RecoverPanic: ptr.To(true),
	})
	if err != nil {
		return nil, fmt.Errorf("add the controller %s: %w", c.Name, err)
	}
	for _, watch := range watches {
		if err := built.Watch(watch); err != nil {
			return nil, fmt.Errorf("add a watch of the controller %s: %w", c.Name, err)
		}
	}
	return built, nil
}

// Self returns a source of requests for the objects of a kind in a cache.
func Self(in cache.Cache, object client.Object, changed ...predicate.Predicate) source.SyncingSource {
	return Kind(in, object, &handler.EnqueueRequestForObject{}, changed...)
}

// Mapped returns a source of the requests that a function makes of the objects of a kind in a cache.
func Mapped(in cache.Cache, object client.Object, requests handler.MapFunc, changed ...predicate.Predicate) source.SyncingSource {
	return Kind(in, object, handler.EnqueueRequestsFromMapFunc(requests), changed...)
}

// Kind returns a source of the requests that a handler makes of the events of a kind in a cache.
func Kind(in cache.Cache, object client.Object, events handler.EventHandler, changed ...predicate.Predicate) source.SyncingSource {
	return source.Kind(in, object, events, changed...)
}

// To returns a function for Mapped that requests the same for each object.
func To(request reconcile.Request) handler.MapFunc {
	return func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} }
}

// AtStart returns a source that requests a reconcile once, when the controller starts.
func AtStart(request reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request)
		return nil
	})
}
