package criticalcomponents

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
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
)

const (
	// nodeNameIndex indexes Pods by node.
	nodeNameIndex = "spec.nodeName"
	// taintIndex indexes the Nodes that have the taint, under Taint.
	taintIndex = "spec.taints.key"
	// csiNodeRetry is the interval of attempts to watch CSINodes while the API server does not serve them.
	csiNodeRetry = time.Minute
)

// IndexCaches adds the indexes that Reconcile needs. AddToManager calls it.
func (r *Reconciler) IndexCaches(ctx context.Context) error {
	if err := r.Nodes.IndexField(ctx, &corev1.Node{}, taintIndex, indexTaint); err != nil {
		return fmt.Errorf("index Nodes by taint: %w", err)
	}
	if err := r.Components.IndexField(ctx, &corev1.Pod{}, nodeNameIndex, indexNodeName); err != nil {
		return fmt.Errorf("index Pods by node: %w", err)
	}
	return nil
}

// AddToManager registers the controller and the caches of components and CSINodes.
func (r *Reconciler) AddToManager(ctx context.Context, mgr manager.Manager) error {
	if err := r.IndexCaches(ctx); err != nil {
		return err
	}
	for _, one := range []cache.Cache{r.Components, r.CSINodes} {
		if err := mgr.Add(one); err != nil {
			return fmt.Errorf("add a cache of critical components: %w", err)
		}
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Kind(r.Nodes, &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{}, waitingChanged())).
		WatchesRawSource(source.Kind(r.Components, &corev1.Pod{},
			handler.TypedEnqueueRequestsFromMapFunc(r.nodeOfPod), changed[*corev1.Pod]())).
		WatchesRawSource(source.Kind(r.Components, &appsv1.DaemonSet{},
			handler.TypedEnqueueRequestsFromMapFunc(r.waitingNodes), changed[*appsv1.DaemonSet]())).
		WatchesRawSource(source.Func(r.listenToCSINodes)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Options.ConcurrentSyncs,
			RateLimiter:             requeue.Backoff(),
		}).
		Complete(r)
}

func indexTaint(obj client.Object) []string {
	if node, ok := obj.(*corev1.Node); ok && HasTaint(node) {
		return []string{Taint}
	}
	return nil
}

func indexNodeName(obj client.Object) []string {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// waitingChanged passes nodes with the taint if a relevant field changed, and nodes that lost the taint.
func waitingChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Node]) bool { return HasTaint(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return (HasTaint(before) || HasTaint(after)) && (before.UID != after.UID ||
				!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
				!equality.Semantic.DeepEqual(before.Labels, after.Labels))
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*corev1.Node]) bool { return HasTaint(e.Object) },
	}
}

// changed passes updates of reduced objects that differ in more than the resourceVersion.
func changed[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			before, ok := e.ObjectOld.DeepCopyObject().(client.Object)
			if !ok {
				return true
			}
			before.SetResourceVersion(e.ObjectNew.GetResourceVersion())
			return !equality.Semantic.DeepEqual(before, e.ObjectNew)
		},
	}
}

// nodeOfPod returns the node of a Pod if the node has the taint.
func (r *Reconciler) nodeOfPod(ctx context.Context, pod *corev1.Pod) []reconcile.Request {
	return r.requestIfWaiting(ctx, pod.Spec.NodeName)
}

func (r *Reconciler) requestIfWaiting(ctx context.Context, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	node, request := &corev1.Node{}, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	if err := r.Nodes.Get(ctx, request.NamespacedName, node, client.UnsafeDisableDeepCopy); err != nil || !HasTaint(node) {
		return nil // a node that is not in the cache yet is enqueued when it appears
	}
	return []reconcile.Request{request}
}

// waitingNodes returns all nodes with the taint, because a DaemonSet may affect each of them.
func (r *Reconciler) waitingNodes(ctx context.Context, _ *appsv1.DaemonSet) []reconcile.Request {
	nodes := &corev1.NodeList{}
	if err := r.Nodes.List(ctx, nodes, client.MatchingFields{taintIndex: Taint}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Could not list the nodes that wait for critical components")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(nodes.Items))
	for i := range nodes.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: nodes.Items[i].Name}})
	}
	return requests
}

// listenToCSINodes enqueues nodes when their CSINode changes. The controller also starts if the API server does not
// serve CSINodes.
func (r *Reconciler) listenToCSINodes(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	wake := func(obj any) {
		if deleted, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = deleted.Obj
		}
		if csiNode, ok := obj.(*storagev1.CSINode); ok {
			for _, request := range r.requestIfWaiting(ctx, csiNode.Name) {
				queue.Add(request)
			}
		}
	}
	handlers := toolscache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(_, after any) { wake(after) }, DeleteFunc: wake,
	}
	go func() {
		for {
			informer, err := r.CSINodes.GetInformer(ctx, &storagev1.CSINode{}, cache.BlockUntilSynced(false))
			if err == nil {
				_, err = informer.AddEventHandler(handlers)
			}
			if err == nil || ctx.Err() != nil {
				return
			}
			if !meta.IsNoMatchError(err) {
				log.FromContext(ctx).Error(err, "Could not watch CSINodes", "again", csiNodeRetry.String())
			}
			select {
			case <-ctx.Done():
				return
			case <-r.Clock.After(csiNodeRetry):
			}
		}
	}()
	return nil
}
