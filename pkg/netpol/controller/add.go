package controller

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// AddToManager registers the controller. The manager starts its cache, only in the leader.
func (r *Reconciler) AddToManager(ctx context.Context, mgr manager.Manager) error {
	if err := addIndexes(ctx, r.Cache, r.Options); err != nil {
		return err
	}
	if err := mgr.Add(watches.InLeader(r.Cache)); err != nil {
		return err
	}
	b := builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(watches.OnChange(r.Cache, &corev1.Service{}, servicesDiffer, r.ofService)).
		WatchesRawSource(watches.OnChange(r.Cache, &corev1.Namespace{}, namespacesDiffer, r.ofNamespace)).
		WatchesRawSource(source.Kind(r.Cache, &networkingv1.NetworkPolicy{}, r.onPolicy())).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			return r.istio.start(ctx, func(services ...types.NamespacedName) { enqueue(q, services...) }, r.withGatewayPolicies)
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.ConcurrentSyncs})
	if r.Options.Config.IngressController != nil {
		b = b.WatchesRawSource(watches.OnChange(r.Cache, &networkingv1.Ingress{}, ingressesDiffer, r.ofIngress))
	}
	if r.Options.OnlyWhilePodsExist {
		b = b.WatchesRawSource(watches.OnChange(r.Cache, podMetadata(), podsDiffer, r.ofPod))
	}
	return b.Complete(r)
}

func enqueue(q queue, services ...types.NamespacedName) {
	for _, service := range services {
		q.Add(reconcile.Request{NamespacedName: service})
	}
}

// Cached objects are reduced to the relevant fields, so these functions compare all of them.
func servicesDiffer(before, after *corev1.Service) bool {
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Annotations, after.Annotations) || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
}

func namespacesDiffer(before, after *corev1.Namespace) bool {
	return before.UID != after.UID || isTerminating(before) != isTerminating(after) || !maps.Equal(before.Labels, after.Labels)
}

func ingressesDiffer(before, after *networkingv1.Ingress) bool {
	return before.UID != after.UID || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
}

func podsDiffer(before, after *metav1.PartialObjectMetadata) bool {
	return !maps.Equal(before.Labels, after.Labels)
}

func (r *Reconciler) ofService(_ context.Context, service *corev1.Service) []types.NamespacedName {
	return []types.NamespacedName{keyOf(service)}
}

// ofNamespace returns the Services that a namespace affects: the Services in it, those that select it, those with
// policies in it or for Pods in it and, for the namespace of the ingress controller, those that Ingresses expose.
func (r *Reconciler) ofNamespace(ctx context.Context, namespace *corev1.Namespace) []types.NamespacedName {
	services := r.services(ctx, client.InNamespace(namespace.Name))
	services = append(services, r.selecting(ctx, namespace)...)
	services = append(services, r.withPolicies(ctx, client.InNamespace(namespace.Name))...)
	if controller := r.Options.Config.IngressController; controller != nil && controller.Namespace == namespace.Name {
		var list networkingv1.IngressList
		if r.listed(ctx, &list) {
			for i := range list.Items {
				services = append(services, r.ofIngress(ctx, &list.Items[i])...)
			}
		}
	}
	return services
}

// selecting returns the Services that select a namespace.
func (r *Reconciler) selecting(ctx context.Context, namespace *corev1.Namespace) []types.NamespacedName {
	var services []types.NamespacedName
	for _, bucket := range bucketsFor(namespace) {
		var list corev1.ServiceList
		if !r.listed(ctx, &list, lookup(indexLabels, bucket, "")...) {
			continue
		}
		for i := range list.Items {
			selectors := netpol.Read(&list.Items[i]).Selectors
			if slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(namespace.Labels)) }) {
				services = append(services, keyOf(&list.Items[i]))
			}
		}
	}
	return services
}

func (r *Reconciler) ofIngress(_ context.Context, ingress *networkingv1.Ingress) []types.NamespacedName {
	var services []types.NamespacedName
	for _, name := range backendNames(ingress) {
		services = append(services, types.NamespacedName{Namespace: ingress.Namespace, Name: name})
	}
	return services
}

// ofPod returns the Services that a Pod's labels name.
func (r *Reconciler) ofPod(ctx context.Context, pod *metav1.PartialObjectMetadata) []types.NamespacedName {
	var services []types.NamespacedName
	for key := range pod.Labels {
		services = append(services, r.services(ctx, lookup(indexKeys, key, "")...)...)
	}
	return services
}

// onPolicy enqueues the Service of a policy, unless the event only shows the last write of this controller.
func (r *Reconciler) onPolicy() handler.TypedEventHandler[*networkingv1.NetworkPolicy, reconcile.Request] {
	type policy = *networkingv1.NetworkPolicy
	return handler.TypedFuncs[policy, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[policy], q queue) {
			if !r.writes.seen(e.Object) {
				enqueue(q, serviceOf(e.Object))
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[policy], q queue) {
			before, after := serviceOf(e.ObjectOld), serviceOf(e.ObjectNew)
			own := r.writes.seen(e.ObjectNew)
			if before != after {
				enqueue(q, before)
			}
			if !own && (before != after || e.ObjectOld.UID != e.ObjectNew.UID ||
				e.ObjectOld.Annotations[keptDigest] != e.ObjectNew.Annotations[keptDigest]) {
				enqueue(q, after)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[policy], q queue) {
			r.writes.seen(e.Object)
			enqueue(q, serviceOf(e.Object))
		},
	}
}

// services returns the names of the cached Services that match the options.
func (r *Reconciler) services(ctx context.Context, options ...client.ListOption) []types.NamespacedName {
	var list corev1.ServiceList
	if !r.listed(ctx, &list, options...) {
		return nil
	}
	names := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, keyOf(&list.Items[i]))
	}
	return names
}

// withPolicies returns the Services of the policies that match the options.
func (r *Reconciler) withPolicies(ctx context.Context, options ...client.ListOption) []types.NamespacedName {
	var list networkingv1.NetworkPolicyList
	if !r.listed(ctx, &list, options...) {
		return nil
	}
	names := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, serviceOf(&list.Items[i]))
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}

func (r *Reconciler) withGatewayPolicies(ctx context.Context) []types.NamespacedName {
	return r.withPolicies(ctx, lookup(indexForGateways, "true", "")...)
}

// listed lists from the cache. This fails only if a namespace is not watched, or during shutdown.
func (r *Reconciler) listed(ctx context.Context, list client.ObjectList, options ...client.ListOption) bool {
	err := r.Cache.List(ctx, list, options...)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Cannot determine which Services an event affects", "reason", err.Error())
	}
	return err == nil
}
