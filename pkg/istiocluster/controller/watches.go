package controller

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/istiocluster"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

var (
	rulesResource   = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1beta1", Resource: "destinationrules"}
	filtersResource = istiocluster.EnvoyFilterKind.GroupVersion().WithResource("envoyfilters")
)

// Indexes of DestinationRules and EnvoyFilters.
const indexService, indexSource = "service", "source"

// AddToManager registers the controller. The manager starts its cache, only in the leader.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	if err := mgr.Add(watches.InLeader(r.Cache)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(watches.OnChange(r.Cache, &corev1.Service{}, servicesDiffer, named(r.ofService))).
		WatchesRawSource(watches.OnChange(r.Cache, &corev1.Namespace{}, namespacesDiffer, named(r.ofNamespace))).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			r.setEnqueue(func(sources ...string) { enqueue(q, sources...) })
			return errors.Join(r.rules.Start(ctx), r.filters.Start(ctx))
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.ConcurrentSyncs}).
		Complete(r)
}

func enqueue(q queue, sources ...string) {
	for _, source := range sources {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: source}})
	}
}

// named converts the namespaces that affected returns to names for requests.
func named[T any](affected func(T) []string) func(context.Context, T) []types.NamespacedName {
	return func(_ context.Context, object T) []types.NamespacedName {
		var names []types.NamespacedName
		for _, source := range affected(object) {
			names = append(names, types.NamespacedName{Name: source})
		}
		return names
	}
}

// watchIstio sets up the watches of DestinationRules and EnvoyFilters.
func (r *Reconciler) watchIstio() {
	namespaces := r.Options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	options := crdwatch.Options{
		Dynamic: r.Dynamic, Metadata: r.Metadata, Kinds: r.Kinds, Namespaces: namespaces,
		Affected: "EnvoyFilters for ingress gateways", OnKnown: r.announce,
	}
	options.Resource, options.Kind = rulesResource, "DestinationRule"
	options.Reduce = func(object *unstructured.Unstructured) any { return istiocluster.ReadRule(object) }
	options.OnEvent = func(object any) { r.enqueue(sourceOfRule(object)...) }
	options.Indexers = toolscache.Indexers{
		toolscache.NamespaceIndex: func(object any) ([]string, error) { return sourceOfRule(object), nil },
		indexService: func(object any) ([]string, error) {
			if rule, ok := object.(*istiocluster.Rule); ok && rule.Service.Name != "" {
				return []string{rule.Service.String()}, nil
			}
			return nil, nil
		},
	}
	r.rules = crdwatch.New(options)
	options.Resource, options.Kind = filtersResource, istiocluster.EnvoyFilterKind.Kind
	options.LabelSelector = istiocluster.LabelManagedBy + "=" + istiocluster.ManagedBy
	options.Reduce = reduceFilter
	options.OnEvent = func(object any) { r.enqueue(sourceOfFilter(object)...) }
	options.Indexers = toolscache.Indexers{indexSource: func(object any) ([]string, error) { return sourceOfFilter(object), nil }}
	r.filters = crdwatch.New(options)
}

// announce enqueues all namespaces that are related to Istio once all Istio objects are known.
func (r *Reconciler) announce() {
	if r.rules.Known() && r.filters.Known() {
		r.enqueue(r.allSources()...)
	}
}

func (r *Reconciler) allSources() []string {
	var sources []string
	for _, rule := range r.rules.List() {
		sources = append(sources, sourceOfRule(rule)...)
	}
	for _, one := range r.filters.List() {
		sources = append(sources, sourceOfFilter(one)...)
	}
	return sources
}

func sourceOfRule(object any) []string {
	if rule, ok := object.(*istiocluster.Rule); ok {
		return []string{rule.Namespace}
	}
	return nil
}

func sourceOfFilter(object any) []string {
	if one, ok := object.(*filter); ok && istiocluster.SourceOf(one.Name) != "" {
		return []string{istiocluster.SourceOf(one.Name)}
	}
	return nil
}

// ofService returns the namespaces with DestinationRules for a Service.
func (r *Reconciler) ofService(service *corev1.Service) []string {
	var sources []string
	for _, rule := range r.rules.ByIndex(indexService, client.ObjectKeyFromObject(service).String()) {
		sources = append(sources, sourceOfRule(rule)...)
	}
	return sources
}

// ofNamespace returns the namespaces that a namespace affects: itself, or all if it has ingress gateways.
func (r *Reconciler) ofNamespace(namespace *corev1.Namespace) []string {
	if istiocluster.IsIngress(namespace.Labels) {
		return r.allSources()
	}
	if len(r.rules.ByIndex(toolscache.NamespaceIndex, namespace.Name)) > 0 {
		return []string{namespace.Name}
	}
	return nil
}

// Cached objects are reduced to the relevant fields, so these functions compare all of them.
func servicesDiffer(before, after *corev1.Service) bool {
	return !equality.Semantic.DeepEqual(before.Annotations, after.Annotations) || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
}

func namespacesDiffer(before, after *corev1.Namespace) bool {
	return before.UID != after.UID || isTerminating(before) != isTerminating(after) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels)
}

func isTerminating(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating
}
