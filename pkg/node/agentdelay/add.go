package agentdelay

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	nodepkg "github.com/trellis-k8s/trellis/pkg/node"
)

// Keys of the labels of nodes that are updated one after the other, as in gardener-resource-manager.
const (
	// LabelSecretName on a Node names the Secret with which its node agent works.
	LabelSecretName = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// LabelRole with the value RoleOperatingSystemConfig marks these Secrets.
	LabelRole = "gardener.cloud/role"
	// RoleOperatingSystemConfig is the value of LabelRole.
	RoleOperatingSystemConfig = "operating-system-config"
	// AnnotationSerial ("true") on such a Secret says that its nodes are updated one after the other.
	AnnotationSerial = "reconciliation.osc.node-agent.gardener.cloud/serial"
)

const (
	// settleTime is how long nodes that join or leave are collected, since nodes rarely come alone and each one changes the
	// delays of all.
	settleTime = 5 * time.Second
	// firstRetry is the delay after the first failure. It doubles with every further one, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// theOnly is what is reconciled: all nodes together.
var theOnly = reconcile.Request{NamespacedName: client.ObjectKey{Name: "nodes"}}

// CacheOptions returns the options of the cache for Reconciler.Secrets: the metadata of the Secrets of node agents.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		secretMetadata(): {
			Label:      labels.SelectorFromSet(labels.Set{LabelRole: RoleOperatingSystemConfig}),
			Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}},
			Transform:  cachetransform.Of(reduceSecret),
		},
	}}
}

func secretMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
}

// reduceSecret keeps the one annotation that matters: others may repeat the data.
func reduceSecret(secret *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	reduced := &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: cachetransform.Meta(secret)}
	if isSerial(secret) {
		reduced.Annotations = map[string]string{AnnotationSerial: "true"}
	}
	return reduced
}

func isSerial(secret *metav1.PartialObjectMetadata) bool {
	return secret.Annotations[AnnotationSerial] == "true"
}

// AddToManager registers the controller and the cache of Secrets.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	if err := mgr.Add(r.Secrets); err != nil {
		return fmt.Errorf("add the cache of the Secrets of node agents: %w", err)
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Kind(r.Nodes, &corev1.Node{}, soon[*corev1.Node](), nodesChanged())).
		WatchesRawSource(source.Kind(r.Secrets, secretMetadata(), soon[*metav1.PartialObjectMetadata](), serialChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// soon has the delays looked at when the settle time is over. What happens until then is part of it.
func soon[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.AddAfter(theOnly, settleTime) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { q.AddAfter(theOnly, settleTime) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.AddAfter(theOnly, settleTime) },
	}
}

// nodesChanged lets through nodes that join or leave, or change the Secret with which they work or their delay. That is also looked at
// when this controller has changed it: the last look may have been by a cache that was behind.
func nodesChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			return e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Labels[LabelSecretName] != e.ObjectNew.Labels[LabelSecretName] ||
				e.ObjectOld.Annotations[nodepkg.AnnotationReconciliationDelay] != e.ObjectNew.Annotations[nodepkg.AnnotationReconciliationDelay]
		},
	}
}

// serialChanged lets through Secrets that make a difference.
func serialChanged() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		CreateFunc: func(e event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return isSerial(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return isSerial(e.ObjectOld) != isSerial(e.ObjectNew)
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return isSerial(e.Object) },
	}
}
