package controller

import (
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

	"github.com/trellis-k8s/trellis/pkg/watches"
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
func Start(mgr manager.Manager, name string, reconciler reconcile.Reconciler, syncs *int, watched ...Watch) error {
	_, err := Build(mgr, name, reconciler, syncs, watched...)
	return err
}

// Build is Start for controllers that have watches of other caches: these can be added to the returned controller.
func Build(mgr manager.Manager, name string, reconciler reconcile.Reconciler, syncs *int, watched ...Watch) (ctrl.Controller, error) {
	sources := make([]source.Source, 0, len(watched))
	for _, w := range watched {
		if w.Handler == nil {
			w.Handler = &handler.EnqueueRequestForObject{}
		}
		var changed []predicate.Predicate
		if w.Changed != nil {
			changed = append(changed, w.Changed)
		}
		sources = append(sources, watches.Kind(mgr.GetCache(), w.Object, w.Handler, changed...))
	}
	return watches.Controller{Name: name, Reconciler: reconciler, Workers: ptr.Deref(syncs, 1)}.AddTo(mgr, sources...)
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
