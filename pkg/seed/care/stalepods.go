package care

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
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
)

// terminatingFor is how long a Pod may take to end before it is deleted without grace.
const terminatingFor = 5 * time.Minute

// staleReasons are parts of the reasons of Pods that ended and that their controllers have replaced.
var staleReasons = []string{"Evicted", "NodeAffinity", "NodeLost", "Preempting"}

// stalePods deletes Pods that ended. It is one of the exceptions to the rule that all that gardenlet changes in a seed travels in
// ManagedResources: a Pod is not part of a manifest, and Kubernetes itself keeps up to 12,500 Pods that ended.
type stalePods struct {
	writer client.Writer
	reader client.Reader
	clock  clock.PassiveClock
}

func addStalePods(mgr manager.Manager, seed cache.Cache, now clock.PassiveClock) error {
	s := &stalePods{writer: mgr.GetClient(), reader: seed, clock: now}
	built, err := controller.New("seed-care-pods", mgr, controller.Options{Reconciler: s, MaxConcurrentReconciles: 1, SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation})
	if err != nil {
		return fmt.Errorf("add the controller of stale Pods: %w", err)
	}
	watched := predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Pod]) bool { return mayBeStale(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool { return mayBeStale(e.ObjectNew) },
		DeleteFunc: func(event.TypedDeleteEvent[*corev1.Pod]) bool { return false },
	}
	if err := built.Watch(source.Kind(seed, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, watched)); err != nil {
		return fmt.Errorf("watch the Pods of the seed: %w", err)
	}
	return nil
}

// ReducePod keeps what is needed of a Pod in a cache: a seed has many.
func ReducePod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	reduced := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Reason: pod.Status.Reason},
	}
	for _, owner := range pod.OwnerReferences {
		reduced.OwnerReferences = append(reduced.OwnerReferences, metav1.OwnerReference{Kind: owner.Kind, Name: owner.Name, UID: owner.UID})
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget {
			reduced.Status.Conditions = append(reduced.Status.Conditions, corev1.PodCondition{Type: condition.Type, Status: condition.Status})
		}
	}
	return reduced, nil
}

func mayBeStale(pod *corev1.Pod) bool {
	return pod.Namespace != metav1.NamespaceSystem && (pod.DeletionTimestamp != nil || stale(pod))
}

// stale reports whether a Pod ended and is of no use.
func stale(pod *corev1.Pod) bool {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case slices.ContainsFunc(staleReasons, func(reason string) bool { return strings.Contains(pod.Status.Reason, reason) }),
		strings.HasPrefix(pod.Status.Reason, "OutOf"):
		return true
	case slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue
	}):
		return true
	}
	return ended && slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "ReplicaSet" })
}

// verdict is what is done with a Pod.
type verdict struct {
	remove, force bool
	// again is when to look at it again; zero for never.
	again time.Time
}

// judge decides what is done with a Pod. It is pure.
func judge(pod *corev1.Pod, now time.Time) verdict {
	switch {
	case pod.Namespace == metav1.NamespaceSystem:
		return verdict{}
	case pod.DeletionTimestamp != nil:
		until := pod.DeletionTimestamp.Add(terminatingFor)
		if now.Before(until) {
			return verdict{again: until}
		}
		return verdict{remove: true, force: true}
	}
	return verdict{remove: stale(pod)}
}

// Reconcile deletes a Pod if it is stale.
func (s *stalePods) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := s.reader.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := s.clock.Now()
	decided := judge(&pod, now)
	if !decided.again.IsZero() {
		return reconcile.Result{RequeueAfter: decided.again.Sub(now)}, nil
	}
	if !decided.remove {
		return reconcile.Result{}, nil
	}
	options := []client.DeleteOption{client.Preconditions{UID: &pod.UID}}
	if decided.force {
		options = append(options, client.GracePeriodSeconds(0))
	}
	log.FromContext(ctx).Info("delete a stale Pod", "reason", pod.Status.Reason, "phase", pod.Status.Phase, "terminating", decided.force)
	err := s.writer.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, options...)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete the stale Pod %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}
