package policy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Cluster is the state that NetworkPolicies depend on.
type Cluster struct {
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
	Policies   []*networkingv1.NetworkPolicy
}

// pod is a Pod that has its own network namespace.
type pod struct {
	*corev1.Pod
	addresses []netip.Addr
}

// pods returns the Pods that policies can select. It skips Pods in the network of the node, and Pods whose addresses have
// been released.
func (c *Cluster) pods() []pod {
	var result []pod
	for _, p := range c.Pods {
		if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		var addresses []netip.Addr
		for _, ip := range p.Status.PodIPs {
			if address, err := netip.ParseAddr(ip.IP); err == nil {
				addresses = append(addresses, address.Unmap())
			}
		}
		if len(addresses) > 0 {
			result = append(result, pod{p, addresses})
		}
	}
	return result
}

func (c *Cluster) namespaceLabels() map[string]labels.Set {
	result := map[string]labels.Set{}
	for _, n := range c.Namespaces {
		result[n.Name] = n.Labels
	}
	return result
}

// selector parses a selector. It never fails, because the API server has validated the selector. One that cannot be parsed
// selects nothing.
func selector(s *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}

// peers returns the Pods that match a peer of a policy in a namespace.
func peers(peer networkingv1.NetworkPolicyPeer, namespace string, all []pod, namespaces map[string]labels.Set) []pod {
	inNamespace := func(name string) bool { return name == namespace }
	if peer.NamespaceSelector != nil {
		s := selector(peer.NamespaceSelector)
		inNamespace = func(name string) bool {
			set, exists := namespaces[name]
			return exists && s.Matches(set)
		}
	}
	matches := labels.Everything()
	if peer.PodSelector != nil {
		matches = selector(peer.PodSelector)
	}
	var result []pod
	for _, p := range all {
		if inNamespace(p.Namespace) && matches.Matches(labels.Set(p.Labels)) {
			result = append(result, p)
		}
	}
	return result
}

// isolates reports which directions a policy restricts. Objects that did not pass through the API server have no policy
// types.
func isolates(spec networkingv1.NetworkPolicySpec) (ingress, egress bool) {
	if len(spec.PolicyTypes) == 0 {
		return true, len(spec.Egress) > 0
	}
	for _, t := range spec.PolicyTypes {
		ingress = ingress || t == networkingv1.PolicyTypeIngress
		egress = egress || t == networkingv1.PolicyTypeEgress
	}
	return ingress, egress
}
