package care

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/stalepods"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// stalePods deletes terminated Pods, including those of Shoot control planes. It is one of the exceptions to the rule
// that gardenlet changes a seed only through ManagedResources: a Pod is not part of a manifest.
type stalePods struct {
	writer client.Writer
	reader client.Reader
	clock  clock.PassiveClock
}

func addStalePods(mgr manager.Manager, seed cache.Cache, now clock.PassiveClock) error {
	s := &stalePods{writer: mgr.GetClient(), reader: seed, clock: now}
	watched := predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Pod]) bool { return mayBeStale(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool { return mayBeStale(e.ObjectNew) },
		DeleteFunc: func(event.TypedDeleteEvent[*corev1.Pod]) bool { return false },
	}
	_, err := watches.Controller{Name: "seed-care-pods", Reconciler: s, Workers: 1}.AddTo(mgr,
		source.Kind(seed, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, watched))
	return err
}

// mayBeStale excludes the namespace kube-system.
func mayBeStale(pod *corev1.Pod) bool {
	return pod.Namespace != metav1.NamespaceSystem && stalepods.MayBeStale(pod)
}

// Reconcile deletes a Pod if it is stale.
func (s *stalePods) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := s.reader.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := s.clock.Now()
	judged := stalepods.Judge(&pod, now)
	if !judged.Again.IsZero() {
		return reconcile.Result{RequeueAfter: judged.Again.Sub(now)}, nil
	}
	return reconcile.Result{}, stalepods.Delete(ctx, s.writer, &pod, judged)
}
