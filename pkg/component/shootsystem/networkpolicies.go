package shootsystem

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Ports of what Pods in the namespace kube-system may reach.
const (
	portAPIServer  = 443
	portKubelet    = 10250
	portDNS        = 53
	portDNSOfPods  = 8053
	prefixPolicies = "gardener.cloud--"
)

// NetworkPolicies returns the policies of the namespace kube-system of a shoot with workers. They deny all traffic of Pods, except what
// labels of a Pod allow: see the constants LabelNetworkPolicyTo of the API. dnsAddresses are the addresses of DNS servers: those of the
// Service, and those of caches on nodes. The error is that of an address.
func NetworkPolicies(dnsAddresses []string) ([]client.Object, error) {
	both := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP}
	servers, err := peers(dnsAddresses)
	if err != nil {
		return nil, err
	}
	ofPods := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "k8s-app", Operator: metav1.LabelSelectorOpIn, Values: []string{"kube-dns"}},
	}}}
	everywhere := []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}},
	}
	return []client.Object{
		&networkingv1.NetworkPolicy{
			ObjectMeta: policyMeta("deny-all", "Denies all traffic of Pods that no other policy allows."),
			Spec: networkingv1.NetworkPolicySpec{
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			},
		},
		allow("allow-to-apiserver", constants.LabelNetworkPolicyToAPIServer, "Allows egress to the API server.",
			networkingv1.NetworkPolicyEgressRule{Ports: ports(portAPIServer, corev1.ProtocolTCP)}),
		allow("allow-to-dns", constants.LabelNetworkPolicyToDNS, "Allows egress to the DNS servers of the cluster.",
			networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{ofPods}, Ports: ports(portDNSOfPods, both...)},
			networkingv1.NetworkPolicyEgressRule{To: servers, Ports: ports(portDNS, both...)}),
		allow("allow-to-kubelet", constants.LabelNetworkPolicyToKubelet, "Allows egress to kubelets.",
			networkingv1.NetworkPolicyEgressRule{Ports: ports(portKubelet, corev1.ProtocolTCP)}),
		allow("allow-to-public-networks", constants.LabelNetworkPolicyToPublicNetworks, "Allows egress to all networks.",
			networkingv1.NetworkPolicyEgressRule{To: everywhere}),
	}, nil
}

func policyMeta(name, description string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: prefixPolicies + name, Labels: parts.SystemComponent(nil),
		Annotations: map[string]string{constants.AnnotationGardenerDescription: description},
	}
}

// allow returns a policy that allows Pods with a label egress.
func allow(name, label, description string, rules ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: policyMeta(name, description+" The Pods need the label "+label+"="+constants.NetworkPolicyAllowed+"."),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{label: constants.NetworkPolicyAllowed}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: rules,
		},
	}
}

func ports(number int32, protocols ...corev1.Protocol) []networkingv1.NetworkPolicyPort {
	var all []networkingv1.NetworkPolicyPort
	for _, protocol := range protocols {
		all = append(all, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(number))})
	}
	return all
}

// peers returns the addresses as peers.
func peers(addresses []string) ([]networkingv1.NetworkPolicyPeer, error) {
	var all []networkingv1.NetworkPolicyPeer
	for _, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("the address of a DNS server: %w", err)
		}
		all = append(all, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(address, address.BitLen()).String()}})
	}
	return all, nil
}
