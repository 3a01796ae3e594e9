package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// Names of indexes of the cache.
const (
	// indexLabels indexes Namespaces by their labels, and Services by the labels that a selected namespace must have: see
	// bucketsOf.
	indexLabels = "labels"
	// indexKeys indexes Services by the label keys of Pods that connect to them, and Pods by these keys.
	indexKeys = "keys"
	// indexService indexes NetworkPolicies by the Service in their labels, and Ingresses by the Services that they expose.
	indexService = "service"
	// indexForGateways indexes the NetworkPolicies for gateways.
	indexForGateways = "gateways"
)

// everything is the bucket of selectors that require no specific label. Every namespace is in this bucket.
const everything = "*"

// bucketsOf returns buckets for a selector. Each namespace that it selects is in at least one of them. A bucket is
// "<key>=<value>", "<key>" for any value, or everything.
func bucketsOf(selector labels.Selector) []string {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil
	}
	best := []string{everything}
	for _, requirement := range requirements {
		var buckets []string
		switch requirement.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for value := range requirement.Values() {
				buckets = append(buckets, requirement.Key()+"="+value)
			}
		case selection.Exists:
			buckets = []string{requirement.Key()}
		default:
			continue
		}
		if best[0] == everything || len(buckets) < len(best) {
			best = buckets
		}
	}
	return best
}

// bucketsFor returns the buckets of all selectors that may match a namespace.
func bucketsFor(namespace *corev1.Namespace) []string {
	buckets := []string{everything}
	for key, value := range namespace.Labels {
		buckets = append(buckets, key, key+"="+value)
	}
	return buckets
}

// addIndexes adds all indexes to the cache.
func addIndexes(ctx context.Context, c cache.Cache, options Options) error {
	type index struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}
	indexes := []index{
		{&corev1.Namespace{}, indexLabels, func(o client.Object) []string {
			return each(o, bucketsFor)
		}},
		{&corev1.Service{}, indexLabels, func(o client.Object) []string { return each(o, selectorBuckets) }},
		{&networkingv1.NetworkPolicy{}, indexService, func(o client.Object) []string {
			return each(o, func(policy *networkingv1.NetworkPolicy) []string { return []string{policy.Annotations[keptService]} })
		}},
		{&networkingv1.NetworkPolicy{}, indexForGateways, func(o client.Object) []string {
			return each(o, gatewayMarks)
		}},
	}
	if options.Config.IngressController != nil {
		indexes = append(indexes,
			index{&networkingv1.Ingress{}, indexService, func(o client.Object) []string { return each(o, backendNames) }})
	}
	if options.OnlyWhilePodsExist {
		indexes = append(indexes,
			index{&corev1.Service{}, indexKeys, func(o client.Object) []string {
				return each(o, func(service *corev1.Service) []string { return netpol.Read(service).Keys() })
			}},
			index{podMetadata(), indexKeys, keysOf})
	}
	for _, one := range indexes {
		if err := c.IndexField(ctx, one.object, one.name, one.values); err != nil {
			return fmt.Errorf("index %T by %s: %w", one.object, one.name, err)
		}
	}
	return nil
}

func each[T client.Object](object client.Object, values func(T) []string) []string {
	typed, ok := object.(T)
	if !ok {
		return nil
	}
	return values(typed)
}

func selectorBuckets(service *corev1.Service) []string {
	var buckets []string
	for _, selector := range netpol.Read(service).Selectors {
		buckets = append(buckets, bucketsOf(selector)...)
	}
	slices.Sort(buckets)
	return slices.Compact(buckets)
}

// gatewayMarks returns the index value of a policy for gateways. It returns none for other policies, because there are
// many.
func gatewayMarks(policy *networkingv1.NetworkPolicy) []string {
	if mark := policy.Annotations[keptForGateways]; mark != "" {
		return []string{mark}
	}
	return nil
}

// keysOf returns the keys of a reduced Pod's labels, which declare its peers.
func keysOf(pod client.Object) []string {
	keys := make([]string, 0, len(pod.GetLabels()))
	for key := range pod.GetLabels() {
		keys = append(keys, key)
	}
	return keys
}

// backendNames returns the names of the Services that an Ingress exposes.
func backendNames(ingress *networkingv1.Ingress) []string {
	var names []string
	for _, backend := range netpol.Backends(ingress) {
		names = append(names, backend.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// lookup returns options to list the objects that an index has for a value, in a namespace or, if that is empty, in all
// namespaces.
func lookup(index, value, namespace string) []client.ListOption {
	return []client.ListOption{client.MatchingFields{index: value}, client.InNamespace(namespace)}
}

func keyOf(object client.Object) types.NamespacedName { return client.ObjectKeyFromObject(object) }
