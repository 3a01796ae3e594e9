package eventexpiry

import (
	"context"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Controller returns the controller that deletes Events. It runs only if it is configured.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "event", Add: add,
		Keeps: []controller.Keep{controller.Keeping(keep)},
		Rights: []controller.Right{
			controller.May("old Events that are not about Shoots, if configured", eventsv1.GroupName, []string{"events"}, "list", "watch", "delete"),
		},
	}
}

func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	settings := deps.Config.Event
	if settings == nil {
		return nil
	}
	r := &reconciler{client: deps.Client, clock: deps.Clock, ttl: settings.TTLNonShootEvents.Duration}
	return controller.Start(mgr, "event", r, settings.ConcurrentSyncs, controller.On(&eventsv1.Event{}, &handler.EnqueueRequestForObject{}, r.expiring()))
}

// reconciler deletes Events.
type reconciler struct {
	client client.Client
	clock  clock.PassiveClock
	ttl    time.Duration
}

// expiring passes new Events that expire. An Event that repeats is read again at its time.
func (r *reconciler) expiring() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			object, ok := e.Object.(*eventsv1.Event)
			if !ok {
				return false
			}
			_, expires := Expires(object, r.ttl)
			return expires
		},
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile deletes an Event, or comes back at its time.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &eventsv1.Event{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	at, expires := Expires(object, r.ttl)
	if !expires {
		return reconcile.Result{}, nil
	}
	if now := r.clock.Now(); at.After(now) {
		return requeue.At(at, now), nil
	}
	// With the resourceVersion, the API server refuses to delete an Event that has occurred again.
	preconditions := client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion}
	if err := client.IgnoreNotFound(r.client.Delete(ctx, object, preconditions)); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete Event %s, which is older than controllers.event.ttlNonShootEvents: %w", request, err)
	}
	return reconcile.Result{}, nil
}
