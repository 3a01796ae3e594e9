package firstnode

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	nodepkg "github.com/trellis-k8s/trellis/pkg/node"
)

const (
	// requestTimeout limits the time of each request.
	requestTimeout = time.Minute
	// conflictRetry is the delay after a conflict: another client changed the Secret.
	conflictRetry = time.Second
)

// Reconciler chooses the first nodes.
type Reconciler struct {
	// Nodes caches the Nodes, reduced by package node.
	Nodes cache.Cache
	// Secrets caches the metadata of the Secrets of node agents: see agentdelay.CacheOptions. The caller starts it.
	Secrets cache.Cache
	// Client writes to the target cluster.
	Client client.Client
	Clock  clock.PassiveClock
}

// Reconcile decides which nodes of the pool of a Secret may apply its configuration, and writes that if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := secretMetadata()
	if err := r.Secrets.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	nodes := &corev1.NodeList{}
	if err := r.Nodes.List(ctx, nodes, client.MatchingLabels{constants.LabelWorkerPoolNodeAgentSecretName: secret.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the Nodes with the Secret %s: %w", secret.Name, err)
	}
	of := poolOf(secret)
	first, tried, again := of.decide(nodesOf(nodes.Items), r.Clock.Now())
	if first == of.first && tried == of.tried {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	err := r.write(ctx, secret, first, tried)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if tried != of.tried {
		log.FromContext(ctx).Info("All nodes of the pool may apply the configuration", "checksum", tried)
	} else {
		log.FromContext(ctx).Info("One node of the pool applies the configuration before the others", "first", first)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// write sets the annotations of the Secret, if it has not changed since the cached version. The response contains only metadata.
func (r *Reconciler) write(ctx context.Context, cached *metav1.PartialObjectMetadata, first, tried string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	changed := cached.DeepCopy()
	for key, value := range map[string]string{
		constants.AnnotationNodeAgentFirstNode: first, constants.AnnotationNodeAgentTriedChecksum: tried,
	} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
		}
	}
	if err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(cached, client.MergeFromWithOptimisticLock{}), client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("say in Secret %s/%s which nodes may apply its configuration: %w", cached.Namespace, cached.Name, err)
	}
	return nil
}

func poolOf(secret *metav1.PartialObjectMetadata) pool {
	of := secret.Annotations
	return pool{
		checksum: of[constants.AnnotationChecksumDataScript], first: of[constants.AnnotationNodeAgentFirstNode],
		tried: of[constants.AnnotationNodeAgentTriedChecksum], serial: of[constants.AnnotationNodeAgentSerialReconciliation] == "true",
	}
}

// nodesOf returns the states of Nodes, sorted by name.
func nodesOf(items []corev1.Node) []node {
	nodes := make([]node, 0, len(items))
	for i := range items {
		nodes = append(nodes, nodeOf(&items[i]))
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	return nodes
}

func nodeOf(object *corev1.Node) node {
	of := node{
		name: object.Name, applied: object.Annotations[constants.AnnotationChecksumCloudConfigData],
		appliedAt: nodepkg.AppliedAt(object), leaving: object.DeletionTimestamp != nil || nodepkg.IsLeaving(object),
		notReadySince: object.CreationTimestamp.UTC(),
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			of.ready, of.notReadySince = condition.Status == corev1.ConditionTrue, condition.LastTransitionTime.UTC()
		}
	}
	return of
}
