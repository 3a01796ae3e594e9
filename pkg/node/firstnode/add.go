package firstnode

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "node-agent-first-node"

// AddToManager registers the controller.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Kind(r.Secrets, secretMetadata(), &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{}, poolChanged())).
		WatchesRawSource(source.Kind(r.Nodes, &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(toSecret), nodeChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: requeue.Backoff()}).
		Complete(r)
}

func secretMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
}

// toSecret maps a Node to the Secret with its configuration.
func toSecret(_ context.Context, object *corev1.Node) []reconcile.Request {
	name := object.Labels[constants.LabelWorkerPoolNodeAgentSecretName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}}}
}

// poolChanged passes changes of configurations, and of what the controller wrote.
func poolChanged() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return poolOf(e.ObjectOld) != poolOf(e.ObjectNew)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return false },
	}
}

// nodeChanged passes changes of Nodes on which a decision depends.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			const label = constants.LabelWorkerPoolNodeAgentSecretName
			return nodeOf(e.ObjectOld) != nodeOf(e.ObjectNew) || e.ObjectOld.Labels[label] != e.ObjectNew.Labels[label]
		},
	}
}
