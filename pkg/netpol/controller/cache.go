package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// CacheOptions returns the options of the cache for Reconciler.Cache. They define which objects are cached, and with
// which fields. Do not share the cache with other users: its objects are incomplete and must not be changed.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Service{}:             {Transform: cachetransform.Of(reduceService)},
			&corev1.Namespace{}:           {Transform: cachetransform.Of(reduceNamespace)},
			&networkingv1.Ingress{}:       {Transform: cachetransform.Of(reduceIngress)},
			&networkingv1.NetworkPolicy{}: {Transform: cachetransform.Of(reducePolicy), Label: ofServices()},
			podMetadata():                 {Transform: cachetransform.Of(reducePod)},
		},
	}
}

// ofServices selects the policies that belong to Services.
func ofServices() labels.Selector {
	selector := labels.NewSelector()
	for _, key := range []string{netpol.LabelServiceName, netpol.LabelServiceNamespace} {
		requirement, err := labels.NewRequirement(key, selection.Exists, nil)
		utilruntime.Must(err)
		selector = selector.Add(*requirement)
	}
	return selector
}

func podMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
}

func reduceService(service *corev1.Service) *corev1.Service {
	reduced := &corev1.Service{ObjectMeta: cachetransform.Meta(service)}
	reduced.Annotations = cachetransform.FilterKeys(service.Annotations, netpol.Relevant)
	reduced.Spec.Selector = service.Spec.Selector
	for _, port := range service.Spec.Ports {
		reduced.Spec.Ports = append(reduced.Spec.Ports, corev1.ServicePort{
			Name: port.Name, Protocol: port.Protocol, Port: port.Port, TargetPort: port.TargetPort,
		})
	}
	return reduced
}

func reduceNamespace(namespace *corev1.Namespace) *corev1.Namespace {
	reduced := &corev1.Namespace{ObjectMeta: cachetransform.Meta(namespace)}
	reduced.Labels, reduced.Status.Phase = namespace.Labels, namespace.Status.Phase
	return reduced
}

func reduceIngress(ingress *networkingv1.Ingress) *networkingv1.Ingress {
	reduced := &networkingv1.Ingress{ObjectMeta: cachetransform.Meta(ingress)}
	reduced.Spec.DefaultBackend = ingress.Spec.DefaultBackend
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		http := &networkingv1.HTTPIngressRuleValue{}
		for _, path := range rule.HTTP.Paths {
			http.Paths = append(http.Paths, networkingv1.HTTPIngressPath{Backend: path.Backend})
		}
		reduced.Spec.Rules = append(reduced.Spec.Rules,
			networkingv1.IngressRule{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: http}})
	}
	return reduced
}

func reducePod(pod *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	reduced := podMetadata()
	reduced.ObjectMeta = cachetransform.Meta(pod)
	reduced.Labels = cachetransform.FilterKeys(pod.Labels, func(key string) bool {
		return strings.HasPrefix(key, netpol.LabelPrefix) && pod.Labels[key] == netpol.LabelValue
	})
	return reduced
}

// Keys of the annotations in which the cache stores the relevant facts of a policy.
const (
	keptService, keptDigest, keptLabelKey, keptPeer, keptForGateways = "service", "digest", "key", "peer", "gateways"
)

// reducePolicy reduces a policy to its digest and its purpose.
func reducePolicy(policy *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	if policy.Annotations[keptDigest] != "" { // already reduced
		return policy
	}
	existing := netpol.ExistingOf(policy)
	reduced := &networkingv1.NetworkPolicy{ObjectMeta: cachetransform.Meta(policy)}
	reduced.Annotations = map[string]string{
		keptService: cachetransform.Intern(netpol.ServiceOf(policy).String()), keptDigest: netpol.Digest(policy),
	}
	if existing.LabelKey != "" {
		reduced.Annotations[keptLabelKey] = cachetransform.Intern(existing.LabelKey)
	}
	if existing.Peer != policy.Namespace {
		reduced.Annotations[keptPeer] = cachetransform.Intern(existing.Peer)
	}
	if existing.ForGateways {
		reduced.Annotations[keptForGateways] = "true"
	}
	return reduced
}

// existingOf returns the stored facts of a reduced policy.
func existingOf(policy *networkingv1.NetworkPolicy) netpol.Existing {
	existing := netpol.Existing{
		Namespace: policy.Namespace, Name: policy.Name, LabelKey: policy.Annotations[keptLabelKey],
		Peer: policy.Namespace, ForGateways: policy.Annotations[keptForGateways] != "",
	}
	if peer := policy.Annotations[keptPeer]; peer != "" {
		existing.Peer = peer
	}
	return existing
}

// serviceOf returns the Service of a reduced policy.
func serviceOf(policy *networkingv1.NetworkPolicy) types.NamespacedName {
	namespace, name, _ := strings.Cut(policy.Annotations[keptService], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
