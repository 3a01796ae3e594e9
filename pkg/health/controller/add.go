package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/resting"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "health"

// changeDelay is how long changes of health are collected before a reconcile. Controllers change a status several times
// in a row, and the cache of ManagedResources must show what was just applied.
const changeDelay = 20 * time.Millisecond

// AddToManager registers the controller. It watches ManagedResources and listens to the live view, which the controller
// of ManagedResources starts.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		For(&resourcesv1alpha1.ManagedResource{}, builder.WithPredicates(relevantChange())).
		Watches(&resourcesv1alpha1.ManagedResource{}, handler.EnqueueRequestsFromMapFunc(awaitedBy), builder.WithPredicates(newDependencies())).
		WatchesRawSource(source.Func(r.listen)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.ConcurrentSyncs}).
		Complete(r)
}

// listen enqueues a ManagedResource when the health of one of its objects changes.
func (r *Reconciler) listen(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Live.ListenHealth(func(text string) {
		origin, valid := resourcesv1alpha1.ParseOrigin(text)
		if !valid || origin.ClusterID != r.Options.ClusterID || !r.inScope(origin.Owner.Namespace) {
			return // belongs to another resource-manager
		}
		r.memories.recordChange(origin.Owner, r.Clock.Now())
		queue.AddAfter(reconcile.Request{NamespacedName: origin.Owner}, changeDelay)
	})
	go resting.Every(ctx, r.Clock, r.Options.SyncPeriod, func(ctx context.Context) { r.wakeResting(ctx, queue) })
	return nil
}

// wakeResting enqueues the resting ManagedResources that may have changed without an event.
func (r *Reconciler) wakeResting(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	disturbed, err := r.resting.Disturbed(ctx, r.Source, !r.Live.Watching())
	if err != nil {
		log.FromContext(ctx).Error(err,
			"Could not determine which ManagedResources may have changed without an event; they are checked again at their next event")
		return
	}
	for _, name := range disturbed {
		queue.Add(reconcile.Request{NamespacedName: name})
	}
}

// inScope reports whether this controller checks the ManagedResources of a namespace.
func (r *Reconciler) inScope(namespace string) bool {
	return len(r.Options.Namespaces) == 0 || slices.Contains(r.Options.Namespaces, namespace)
}

// relevantChange passes changes that may affect the conditions: changes of the objects to check, changes that the
// controller of ManagedResources applied, and changes of the conditions themselves. The last reconcile may have read an
// older state from a cache that lagged behind, and found nothing to report.
func relevantChange() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isManagedResource := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			return !ok || !isManagedResource || before.Generation != after.Generation ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
				ignored(before) != ignored(after) || appliedChanged(before, after) || conditionsChanged(before, after)
		},
	}
}

func ignored(mr *resourcesv1alpha1.ManagedResource) bool {
	return resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore])
}

// conditionsChanged reports whether the conditions of this controller changed.
func conditionsChanged(before, after *resourcesv1alpha1.ManagedResource) bool {
	return slices.ContainsFunc([]resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing},
		func(conditionType resourcesv1alpha1.ConditionType) bool {
			return !equality.Semantic.DeepEqual(conditionOf(before, conditionType), conditionOf(after, conditionType))
		})
}

// appliedChanged reports whether the controller of ManagedResources wrote a relevant change.
func appliedChanged(before, after *resourcesv1alpha1.ManagedResource) bool {
	healthy := resourcesv1alpha1.ConditionOf(after.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	return healthy.Reason == resourcesv1alpha1.ReasonChecksPending ||
		!equality.Semantic.DeepEqual(conditionOf(before, resourcesv1alpha1.ResourcesApplied),
			conditionOf(after, resourcesv1alpha1.ResourcesApplied)) ||
		before.Status.AppliedInputs != after.Status.AppliedInputs || len(before.Status.Resources) != len(after.Status.Resources)
}

func conditionOf(mr *resourcesv1alpha1.ManagedResource, conditionType resourcesv1alpha1.ConditionType) resourcesv1alpha1.Condition {
	return resourcesv1alpha1.ConditionOf(mr.Status.Conditions, conditionType)
}
