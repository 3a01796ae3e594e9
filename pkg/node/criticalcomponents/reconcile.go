// Package criticalcomponents removes a taint from nodes whose critical components are ready. Critical components are
// Pods, mostly of DaemonSets, that other Pods on a node need. Kubelets register with the taint, so that no other Pod
// starts too early.
//
// It watches Nodes, CSINodes, and DaemonSets and Pods with the label of critical components. It decides based on its
// caches. Its only requests are one patch for each node, and Events.
package criticalcomponents

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// ControllerName names the controller in logs and metrics.
	ControllerName = "node-critical-components"
	// ReporterName is the reporting controller of the Events, as in gardener-resource-manager.
	ReporterName = ControllerName + "-controller"

	// requestTimeout limits the total time of the requests of one reconcile.
	requestTimeout = time.Minute
	// csiNodeTimeout limits the time to wait until the cache has CSINodes.
	csiNodeTimeout = 5 * time.Second
	// conflictDelay is when a node is reconciled again after a conflict, so that the cache shows the change.
	conflictDelay = 200 * time.Millisecond
	// minBackoff prevents a hot loop with a tiny setting.
	minBackoff = time.Second
)

// Options are the settings of the controller.
type Options struct {
	// ConcurrentSyncs is the number of nodes that are reconciled concurrently.
	ConcurrentSyncs int
	// Backoff is the time after which a waiting node is reconciled again without an event, and the minimum time between
	// two Events with the same reason. It is at least a second.
	Backoff time.Duration
}

// Reconciler removes the taint from nodes.
type Reconciler struct {
	// Nodes caches the Nodes, reduced by package node.
	Nodes cache.Cache
	// Components caches the critical components. It is a cache with CacheOptions.
	Components cache.Cache
	// CSINodes caches the CSINodes. It is a cache with CSINodeCacheOptions. It is separate, so that the other caches sync
	// even if the API server does not serve CSINodes.
	CSINodes cache.Cache
	// Client writes to the target cluster.
	Client client.Client
	// Metrics may be the zero value.
	Metrics Metrics
	Clock   clock.Clock
	Options Options

	memories *memories
	// instance identifies this process in Events.
	instance string
}

// NewReconciler completes a reconciler whose exported fields are set.
func NewReconciler(r Reconciler) *Reconciler {
	r.Options.Backoff = max(r.Options.Backoff, minBackoff)
	r.memories = &memories{}
	r.instance = ReporterName
	if host, err := os.Hostname(); err == nil {
		r.instance += "-" + host
	}
	return &r
}

// Reconcile removes the taint from a node if its critical components are ready, and reports the missing ones otherwise.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer func() { r.Metrics.waiting.Set(float64(r.memories.count())) }()
	node := &corev1.Node{}
	err := r.Nodes.Get(ctx, request.NamespacedName, node)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read Node %s: %w", request.Name, err)
	}
	if err != nil || !HasTaint(node) {
		r.memories.forget(request.Name)
		return reconcile.Result{}, nil
	}
	missing, err := r.missing(ctx, node)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("check the critical components of Node %s: %w", node.Name, err)
	}
	if missing.Reason() == "" {
		return r.release(ctx, node)
	}
	if r.memories.waits(node.Name, node.UID, missing, r.Clock.Now(), r.Options.Backoff) {
		log.FromContext(ctx).Info("Node is waiting for critical components", "reason", missing.Reason(), "missing", missing.Message())
		if !r.createEvent(ctx, node, corev1.EventTypeWarning, missing.Reason(), actionWait, missing.Message()) {
			r.memories.forgetReason(node.Name, missing.Reason())
		}
	}
	return reconcile.Result{RequeueAfter: r.Options.Backoff}, nil
}

// missing reads the input of Judge from the caches and returns its result.
func (r *Reconciler) missing(ctx context.Context, node *corev1.Node) (Missing, error) {
	daemonSets, pods := &appsv1.DaemonSetList{}, &corev1.PodList{}
	if err := r.Components.List(ctx, daemonSets, client.UnsafeDisableDeepCopy); err != nil {
		return Missing{}, fmt.Errorf("list DaemonSets: %w", err)
	}
	err := r.Components.List(ctx, pods, client.MatchingFields{nodeNameIndex: node.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return Missing{}, fmt.Errorf("list Pods: %w", err)
	}
	var csiNode *storagev1.CSINode
	if requireDrivers(pods.Items) {
		csiNode = r.csiNode(ctx, node)
	}
	return Judge(node, daemonSets.Items, pods.Items, csiNode), nil
}

// csiNode returns the CSINode of a node, or nil if it does not exist or cannot be read. Its drivers count as not
// registered then.
func (r *Reconciler) csiNode(ctx context.Context, node *corev1.Node) *storagev1.CSINode {
	ctx, cancel := context.WithTimeout(ctx, csiNodeTimeout)
	defer cancel()
	csiNode := &storagev1.CSINode{}
	err := r.CSINodes.Get(ctx, client.ObjectKeyFromObject(node), csiNode)
	if err == nil {
		return csiNode
	}
	if !apierrors.IsNotFound(err) {
		log.FromContext(ctx).Error(err, "Could not read the CSINode of a node; treating its CSI drivers as not registered")
	}
	return nil
}

// release removes the taint from a node, if the node has not changed since it was read.
func (r *Reconciler) release(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	before := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isOurs)
	err := r.Client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil // an event will follow
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("remove the taint %s of Node %s: %w", Taint, node.Name, err)
	}
	var waitedFor time.Duration
	if since, waited := r.memories.forget(node.Name); waited {
		waitedFor = r.Clock.Since(since)
	}
	r.Metrics.duration.Observe(waitedFor)
	log.FromContext(ctx).Info("Removed the taint of a node whose critical components are ready", "taint", Taint, "after", waitedFor.String())
	r.createEvent(ctx, node, corev1.EventTypeNormal, ReasonReady, actionRelease,
		"All critical components of this node are ready: removed the taint "+Taint)
	return reconcile.Result{}, nil
}
