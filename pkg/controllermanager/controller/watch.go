package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Watch is a watch of one kind in the cache of the manager, with its handler and filter.
type Watch struct {
	Object client.Object
	// Handler is nil to reconcile the object itself.
	Handler handler.EventHandler
	Changed predicate.Predicate
}

// On returns a watch.
func On(object client.Object, handler handler.EventHandler, changed predicate.Predicate) Watch {
	return Watch{Object: object, Handler: handler, Changed: changed}
}

// Start adds a controller with its watches to the manager. syncs may be nil for one object at once.
func Start(mgr manager.Manager, name string, reconciler reconcile.Reconciler, syncs *int, watches ...Watch) error {
	_, err := Build(mgr, name, reconciler, syncs, watches...)
	return err
}

// Build is Start for controllers that have watches of other caches: these can be added to the returned controller.
func Build(mgr manager.Manager, name string, reconciler reconcile.Reconciler, syncs *int, watches ...Watch) (ctrl.Controller, error) {
	built, err := ctrl.New(name, mgr, ctrl.Options{
		Reconciler: reconciler, MaxConcurrentReconciles: max(ptr.Deref(syncs, 1), 1),
		SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation, RecoverPanic: ptr.To(true),
	})
	if err != nil {
		return nil, fmt.Errorf("add the controller %s: %w", name, err)
	}
	for _, w := range watches {
		if w.Handler == nil {
			w.Handler = &handler.EnqueueRequestForObject{}
		}
		var changed []predicate.Predicate
		if w.Changed != nil {
			changed = append(changed, w.Changed)
		}
		if err := built.Watch(source.Kind(mgr.GetCache(), w.Object, w.Handler, changed...)); err != nil {
			return nil, fmt.Errorf("add a watch of the controller %s: %w", name, err)
		}
	}
	return built, nil
}

// Changes passes updates that change the compared fields, or that start a deletion.
func Changes[T client.Object](differ func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, same := e.ObjectNew.(T)
		return !ok || !same || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			before.GetUID() != after.GetUID() || differ(before, after)
	}}
}

// Deletions passes deletions.
func Deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// Requests returns requests for cluster-scoped objects.
func Requests(names ...string) []reconcile.Request {
	all := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return all
}
