package netpol

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// traffic is a connection from one Pod to a port of another.
type traffic struct {
	from, to *corev1.Pod
	protocol corev1.Protocol
	port     int32
}

// evaluator evaluates network policies as Kubernetes defines them. Traffic that no policy allows is denied.
type evaluator struct {
	namespaces map[string]Namespace
	policies   []*networkingv1.NetworkPolicy
}

// ingress reports whether the policies allow the traffic at its destination.
func (e evaluator) ingress(t traffic) bool {
	return slices.ContainsFunc(e.policies, func(policy *networkingv1.NetworkPolicy) bool {
		return slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) && e.applies(policy, t.to) &&
			slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
				return e.matchesPeer(policy.Namespace, rule.From, t.from) && matchesPort(rule.Ports, t)
			})
	})
}

// egress reports whether the policies allow the traffic at its source.
func (e evaluator) egress(t traffic) bool {
	return slices.ContainsFunc(e.policies, func(policy *networkingv1.NetworkPolicy) bool {
		return slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) && e.applies(policy, t.from) &&
			slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
				return e.matchesPeer(policy.Namespace, rule.To, t.to) && matchesPort(rule.Ports, t)
			})
	})
}

func (e evaluator) applies(policy *networkingv1.NetworkPolicy, pod *corev1.Pod) bool {
	return policy.Namespace == pod.Namespace && selects(&policy.Spec.PodSelector, pod.Labels)
}

func (e evaluator) matchesPeer(namespace string, peers []networkingv1.NetworkPolicyPeer, pod *corev1.Pod) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.NamespaceSelector == nil && pod.Namespace != namespace {
			return false
		}
		return (peer.NamespaceSelector == nil || selects(peer.NamespaceSelector, e.namespaces[pod.Namespace].Labels)) &&
			(peer.PodSelector == nil || selects(peer.PodSelector, pod.Labels))
	})
}

func matchesPort(ports []networkingv1.NetworkPolicyPort, t traffic) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(port networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		last := int32(0)
		if port.EndPort != nil {
			last = *port.EndPort
		}
		return protocol == t.protocol && (port.Port == nil || isPort(*port.Port, last, t))
	})
}

// isPort reports whether the traffic goes to a port. The port may be the name of a port of the Pod, or the start of a range.
func isPort(port intstr.IntOrString, last int32, t traffic) bool {
	if port.Type == intstr.Int {
		return t.port >= port.IntVal && t.port <= max(last, port.IntVal)
	}
	return slices.ContainsFunc(t.to.Spec.Containers[0].Ports, func(one corev1.ContainerPort) bool {
		return one.Name == port.StrVal && one.Protocol == t.protocol && one.ContainerPort == t.port
	})
}

func selects(selector *metav1.LabelSelector, values map[string]string) bool {
	if len(selector.MatchExpressions) == 0 { // the usual case, which is fast
		for key, value := range selector.MatchLabels {
			if present, found := values[key]; !found || present != value {
				return false
			}
		}
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(values))
}
