package tokeninvalidator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "token-invalidator"

// AddToManager registers the controller. The cache is one for the target cluster with CacheOptions. The manager runs it
// only in the leader, together with the controller.
func (r *Reconciler) AddToManager(ctx context.Context, mgr manager.Manager, target cache.Cache) error {
	if err := target.IndexField(ctx, newSecret(), accountIndex, accountOf); err != nil {
		return fmt.Errorf("index Secrets of the target cluster by ServiceAccount: %w", err)
	}
	if err := target.IndexField(ctx, &corev1.Pod{}, usedIndex, usedBy); err != nil {
		return fmt.Errorf("index Pods of the target cluster by Secret: %w", err)
	}
	r.cache = target
	if err := mgr.Add(watches.InLeader(target)); err != nil {
		return fmt.Errorf("add the cache of the token invalidator: %w", err)
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Kind(target, newSecret(),
			&handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{}, labelsChanged())).
		WatchesRawSource(source.Kind(target, &corev1.ServiceAccount{},
			handler.TypedEnqueueRequestsFromMapFunc(r.tokensOf), settingsChanged())).
		WatchesRawSource(source.Kind(target, &corev1.Pod{},
			handler.TypedEnqueueRequestsFromMapFunc(r.releasedBy), podGone())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.options.ConcurrentSyncs,
			RateLimiter:             requeue.Backoff(),
		}).
		Complete(r)
}

// tokensOf returns the Secrets with static tokens of a ServiceAccount.
func (r *Reconciler) tokensOf(ctx context.Context, account *corev1.ServiceAccount) []reconcile.Request {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	err := r.cache.List(ctx, list, client.InNamespace(account.Namespace), client.MatchingFields{accountIndex: account.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the Secrets of a ServiceAccount",
			"serviceAccount", client.ObjectKeyFromObject(account))
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// releasedBy returns the Secrets with static tokens that a Pod used.
func (r *Reconciler) releasedBy(ctx context.Context, pod *corev1.Pod) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range usedBy(pod) {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
		if r.cache.Get(ctx, key, newSecret()) == nil {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// labelsChanged passes changes of the cached labels and annotations of a Secret, which may affect the decision.
func labelsChanged() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.Or[*metav1.PartialObjectMetadata](
		predicate.TypedLabelChangedPredicate[*metav1.PartialObjectMetadata]{},
		predicate.TypedAnnotationChangedPredicate[*metav1.PartialObjectMetadata]{},
		replaced[*metav1.PartialObjectMetadata](),
	)
}

// settingsChanged passes ServiceAccounts that are new or whose tokens became wanted or unwanted.
func settingsChanged() predicate.TypedPredicate[*corev1.ServiceAccount] {
	return predicate.TypedFuncs[*corev1.ServiceAccount]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.ServiceAccount]) bool {
			return unwanted(e.ObjectOld) != unwanted(e.ObjectNew)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1.ServiceAccount]) bool { return false }, // Kubernetes deletes its Secrets
	}
}

// replaced passes updates that combine a deletion and a creation, which a watch may report as one event.
func replaced[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() },
	}
}

// podGone passes Pods that were deleted or have ended, which is the same for this watch.
func podGone() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.And(replaced[*corev1.Pod](), predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(event.TypedCreateEvent[*corev1.Pod]) bool { return false },
	})
}
