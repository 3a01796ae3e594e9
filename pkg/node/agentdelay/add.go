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

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	nodepkg "github.com/trellis-k8s/trellis/pkg/node"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Keys of the labels of nodes that are updated one after the other, as in gardener-resource-manager.
const (
	// LabelSecretName on a Node names the Secret that its node agent uses.
	LabelSecretName = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// LabelRole with the value RoleOperatingSystemConfig marks these Secrets.
	LabelRole = "gardener.cloud/role"
	// RoleOperatingSystemConfig is the value of LabelRole.
	RoleOperatingSystemConfig = "operating-system-config"
	// AnnotationSerial ("true") on such a Secret means that its nodes are updated one after the other.
	AnnotationSerial = "reconciliation.osc.node-agent.gardener.cloud/serial"
)

const (
	// settleTime is how long joining and leaving nodes are collected before a reconcile. Nodes often join in groups, and
	// each one changes the delays of all.
	settleTime = 5 * time.Second
	// conflictRetry is the delay after a conflict: another client changed a node.
	conflictRetry = time.Second
)

// allNodes is the only request. It covers all nodes.
var allNodes = reconcile.Request{NamespacedName: client.ObjectKey{Name: "nodes"}}

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

// reduceSecret keeps only the relevant annotations, because other annotations may contain the data.
func reduceSecret(secret *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	reduced := &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: cachetransform.Meta(secret)}
	reduced.Annotations = cachetransform.KeepKeys(secret.Annotations, AnnotationSerial, constants.AnnotationChecksumDataScript,
		constants.AnnotationNodeAgentFirstNode, constants.AnnotationNodeAgentTriedChecksum)
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
			RateLimiter:             requeue.Backoff(),
		}).
		Complete(r)
}

// soon enqueues the request after the settle time. The reconcile covers all events until then.
func soon[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.AddAfter(allNodes, settleTime) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { q.AddAfter(allNodes, settleTime) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.AddAfter(allNodes, settleTime) },
	}
}

// nodesChanged passes nodes that join or leave, or whose Secret or delay changes. It also passes changes by this
// controller, because its last reconcile may have read an outdated cache.
func nodesChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.UID != after.UID || before.Labels[LabelSecretName] != after.Labels[LabelSecretName] ||
				before.Annotations[nodepkg.AnnotationReconciliationDelay] != after.Annotations[nodepkg.AnnotationReconciliationDelay]
		},
	}
}

// serialChanged passes Secrets that affect which nodes are updated serially.
func serialChanged() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		CreateFunc: func(e event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return isSerial(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return isSerial(e.ObjectOld) != isSerial(e.ObjectNew)
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return isSerial(e.Object) },
	}
}
