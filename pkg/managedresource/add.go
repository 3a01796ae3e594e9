package managedresource

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
	"github.com/trellis-k8s/trellis/pkg/resting"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	// ControllerName is the name of the controller in logs and metrics.
	ControllerName = "managedresource"
	// secretRefIndex finds the ManagedResources that reference a Secret.
	secretRefIndex = "spec.secretRefs.name" //nolint:gosec // the name of an index
	// deleteAfterIndex finds the ManagedResources that name a ManagedResource in deleteAfter.
	deleteAfterIndex = "spec.deleteAfter"
	// firstRetry is the delay after the first failure. It doubles with each further failure, up to lastRetry or the sync
	// period: a ManagedResource may wait for an object of another ManagedResource, which sends no event.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// waitingPerSync is how many ManagedResources may wait for the rollout of their objects for each one that occupies a
	// worker slot.
	waitingPerSync = 8
)

// Options are the settings of the controller.
type Options struct {
	// Class selects the ManagedResources: resourcesv1alpha1.DefaultClass, resourcesv1alpha1.AllClasses or a custom class.
	Class string
	// Namespaces are the namespaces of the source cluster that contain the ManagedResources. If it is empty, these are
	// all.
	Namespaces []string
	// ClusterID is the identity of the source cluster in the origin annotation. It may be empty.
	ClusterID string
	// ManagedBy is the value of the managed-by label on every object.
	ManagedBy string
	// SyncPeriod is how often a ManagedResource is reconciled without an event.
	SyncPeriod time.Duration
	// PruneDelay is how long the deletion of an object that was removed from the manifests is delayed, so that another
	// ManagedResource can take it over.
	PruneDelay time.Duration
	// CollectsGarbage is set if the garbage collector is enabled. It then deletes its ConfigMaps and Secrets.
	CollectsGarbage bool
	// NamespaceServiceAccounts makes annotations of Namespaces determine the ServiceAccounts: see
	// resourcesv1alpha1.AnnotationNamespaceAccount.
	NamespaceServiceAccounts bool
	// AlwaysUpdate applies every object at every reconcile, even if nothing has changed.
	AlwaysUpdate bool
	// ConcurrentSyncs is the number of ManagedResources that are reconciled concurrently.
	ConcurrentSyncs int
	// Limits restrict the size of the content of one Secret.
	Limits manifest.Limits
}

// Reconciler reconciles ManagedResources.
type Reconciler struct {
	// Source reads ManagedResources of the source cluster from a cache, and writes them.
	Source client.Client
	// Direct reads from the source cluster without a cache.
	Direct client.Reader
	// Autoscalers reads HorizontalPodAutoscalers of the target cluster.
	Autoscalers client.Reader
	// Objects, Live and Engine access the target cluster.
	Objects *target.Objects
	Live    *live.View
	Engine  *apply.Engine
	// Recorder writes Events on ManagedResources.
	Recorder events.EventRecorder
	// Metrics may be nil.
	Metrics *Metrics
	Clock   clock.Clock
	Options Options

	claims         *ownership.Claims
	pruneDelays    *ownership.PruneDelays
	deleted        *ownership.Deleted
	suspended      *suspendedManifests
	staleReads     *ownership.StaleReads
	unrecorded     *ownership.Unrecorded
	acceptedFields *ownership.AcceptedFields
	warnings       *recentWarnings
	fights         *fight.Detector[object.Key]
	resting        *resting.Set
	// enqueueOwner adds a ManagedResource to the queue. It holds nil before the controller is started.
	enqueueOwner *atomic.Pointer[func(types.NamespacedName)]
	// workerSlots holds one item for each pass that is working, as opposed to waiting.
	workerSlots chan struct{}
	// startup is the state of the preparations for the first reconcile.
	startup *startupState
}

// NewReconciler returns a reconciler with the exported fields of r.
func NewReconciler(r Reconciler) *Reconciler {
	r.claims, r.pruneDelays, r.deleted = ownership.NewClaims(), ownership.NewPruneDelays(), ownership.NewDeleted()
	r.staleReads = ownership.NewStaleReads(r.Clock)
	r.acceptedFields, r.warnings, r.fights = ownership.NewAcceptedFields(), newRecentWarnings(), fight.New[object.Key]()
	r.unrecorded = ownership.NewUnrecorded()
	r.resting, r.suspended = resting.NewSet(), newSuspendedManifests()
	r.workerSlots = make(chan struct{}, max(r.Options.ConcurrentSyncs, 1))
	r.startup, r.enqueueOwner = &startupState{}, &atomic.Pointer[func(types.NamespacedName)]{}
	return &r
}

// AddToManager registers the controller. It watches ManagedResources, the metadata of Secrets of the source cluster,
// the HorizontalPodAutoscalers in the cache of the target cluster, and the applied objects.
func (r *Reconciler) AddToManager(ctx context.Context, mgr manager.Manager, targetCache cache.Cache) error {
	for index, values := range map[string]client.IndexerFunc{
		secretRefIndex: secretNames, resourcesv1alpha1.DependencyIndex: dependencyNames, deleteAfterIndex: deletedAfterNames,
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &resourcesv1alpha1.ManagedResource{}, index, values); err != nil {
			return fmt.Errorf("index ManagedResources by %s: %w", index, err)
		}
	}
	r.Metrics.observe(r.Live, r.fights, r.Clock)
	if err := mgr.Add(r.Live); err != nil {
		return fmt.Errorf("add the watches of the target cluster: %w", err)
	}
	// Warm up at the start, so that the first reconcile does not have to wait for it.
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if _, err := r.warmUp(ctx); err != nil {
			log.FromContext(ctx).Info("Could not prepare for the first reconcile, which tries it again", "error", err.Error())
		}
		return nil
	})); err != nil {
		return fmt.Errorf("add the preparation of the first reconcile: %w", err)
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		For(&resourcesv1alpha1.ManagedResource{}, builder.WithPredicates(relevantChange())).
		Watches(&resourcesv1alpha1.ManagedResource{}, handler.EnqueueRequestsFromMapFunc(r.dependingOn),
			builder.WithPredicates(readinessChange())).
		Watches(&resourcesv1alpha1.ManagedResource{}, handler.EnqueueRequestsFromMapFunc(r.deletedAfter),
			builder.WithPredicates(mayEndDeletionWait())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.referringToSecret)).
		WatchesRawSource(source.Kind(targetCache, &autoscalingv2.HorizontalPodAutoscaler{},
			handler.TypedEnqueueRequestsFromMapFunc(r.owningScaledObject), scalingChanged())).
		WatchesRawSource(source.Func(r.listen)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: max(r.Options.ConcurrentSyncs, 1) * (1 + waitingPerSync),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstRetry, min(lastRetry, r.Options.SyncPeriod)),
		}).
		Complete(r)
}

// secretNames returns the names of the Secrets that a ManagedResource references, for the index.
func secretNames(obj client.Object) []string {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, reference := range mr.Spec.SecretRefs {
		names = append(names, reference.Name)
	}
	return names
}

// referringToSecret returns requests for the ManagedResources that reference a Secret.
func (r *Reconciler) referringToSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	names, err := r.indexed(ctx, secretRefIndex, secret.GetName(), client.InNamespace(secret.GetNamespace()))
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the ManagedResources that refer to a Secret",
			"secret", client.ObjectKeyFromObject(secret))
	}
	return requestsFor(names)
}

// indexed returns the ManagedResources that an index contains for a value.
func (r *Reconciler) indexed(ctx context.Context, index, value string, options ...client.ListOption) ([]types.NamespacedName, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	options = append(options, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)
	if err := r.Source.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list the ManagedResources with %s in %s: %w", value, index, err)
	}
	names := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names, nil
}

func requestsFor(names []types.NamespacedName) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}

// listen enqueues ManagedResources: those that claim an object that has changed, those to which an object is handed
// over, and periodically those that may have changed without an event.
func (r *Reconciler) listen(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	enqueueOwner := func(owner types.NamespacedName) { r.enqueue(queue, owner) }
	r.enqueueOwner.Store(&enqueueOwner)
	r.Live.Listen(func(key object.Key) {
		for _, owner := range r.claims.All(key) {
			enqueueOwner(owner)
		}
	})
	go resting.Every(ctx, r.Clock, r.Options.SyncPeriod, r.enqueueResting)
	return nil
}

// deletionPriority is the priority of ManagedResources whose objects are being deleted. The default is 0.
const deletionPriority = 1

// enqueue adds a ManagedResource to the queue. ManagedResources whose objects are being deleted come first. If many are
// deleted at once, each is finished, with its objects deleted together, before the next one starts.
func (r *Reconciler) enqueue(queue workqueue.TypedRateLimitingInterface[reconcile.Request], owner types.NamespacedName) {
	request := reconcile.Request{NamespacedName: owner}
	if queue, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok && r.deleted.Has(owner) {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(deletionPriority)}, request)
		return
	}
	queue.Add(request)
}

// owningScaledObject returns a request for the first ManagedResource that claims the scale target of an autoscaler.
func (r *Reconciler) owningScaledObject(_ context.Context, autoscaler *autoscalingv2.HorizontalPodAutoscaler) []reconcile.Request {
	key, ok := scaledObject(autoscaler)
	if !ok {
		return nil
	}
	owner, ok := r.claims.First(key)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: owner}}
}

// scalingChanged selects the creation and deletion of autoscalers, and changes of their scale target or of their
// ability to scale from 0 replicas.
func scalingChanged() predicate.TypedPredicate[*autoscalingv2.HorizontalPodAutoscaler] {
	return predicate.TypedFuncs[*autoscalingv2.HorizontalPodAutoscaler]{
		UpdateFunc: func(e event.TypedUpdateEvent[*autoscalingv2.HorizontalPodAutoscaler]) bool {
			return e.ObjectOld.Spec.ScaleTargetRef != e.ObjectNew.Spec.ScaleTargetRef || scalingBy(e.ObjectOld) != scalingBy(e.ObjectNew)
		},
	}
}

// relevantChange selects changes that may require a reconcile: of the spec, of the annotations that control the
// controller, the start of the deletion, the removal of a finalizer by the resource-manager of another class, and
// objects that have become unhealthy. It ignores the writes of this controller.
func relevantChange() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
				controlAnnotationsChanged(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
				finalizerRemoved(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
				becameUnhealthy(e.ObjectOld, e.ObjectNew)
		},
	}
}

// becameUnhealthy reports whether objects that were healthy or not checked are now unhealthy (as in
// gardener-resource-manager). It ignores DeletionPending, which this controller sets itself.
func becameUnhealthy(before, after client.Object) bool {
	healthyBefore, healthyAfter := healthOf(before), healthOf(after)
	return (healthyBefore.Status == resourcesv1alpha1.ConditionTrue || healthyBefore.Reason == "") &&
		healthyAfter.Status == resourcesv1alpha1.ConditionFalse && healthyAfter.Reason != resourcesv1alpha1.ReasonDeletionPending
}

func healthOf(obj client.Object) resourcesv1alpha1.Condition {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return resourcesv1alpha1.Condition{}
	}
	return resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
}

// controlAnnotationsChanged reports whether an annotation that controls the reconcile has changed. It ignores that the controller
// removes the operation "reconcile" when it starts.
func controlAnnotationsChanged(before, after map[string]string) bool {
	const ignore, operation = resourcesv1alpha1.AnnotationIgnore, resourcesv1alpha1.AnnotationOperation
	started := before[operation] == resourcesv1alpha1.OperationReconcile && after[operation] == ""
	const confirm = resourcesv1alpha1.AnnotationConfirmPrune
	return before[ignore] != after[ignore] || before[confirm] != after[confirm] || (before[operation] != after[operation] && !started)
}

func finalizerRemoved(before, after []string) bool {
	return slices.ContainsFunc(before, func(finalizer string) bool { return !slices.Contains(after, finalizer) })
}
