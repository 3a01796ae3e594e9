// Package networkpolicies contains the general network policies of a namespace in a seed. They deny all traffic by
// default, and allow Pods with certain labels common egress: DNS, the API server of the seed, and networks outside of
// it. Policies that the resource-manager creates for Services allow traffic between Pods.
package networkpolicies

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Values are the inputs of the component.
type Values struct {
	// Namespace and Labels are the name and the labels of the namespace.
	Namespace string
	Labels    map[string]string
	// AdditionalSelectors select additional namespaces that get the same policies as extensions.
	AdditionalSelectors []metav1.LabelSelector
	// Networks of the cluster.
	Networks Networks
	// ShootNetworks are the networks of the Shoot whose control plane is in the namespace, in CIDR notation: see [ShootNetworks].
	ShootNetworks []string
	// APIServers are the addresses of the seed's API server: see [APIServers].
	APIServers []netip.AddrPort
}

// Objects returns the policies of a namespace, none if the namespace has no policies. It returns an error if a network
// is not in CIDR notation, or if the addresses of the API server are unknown, because Pods would otherwise lose their
// connections to it.
func Objects(values Values) ([]client.Object, error) {
	kind, err := kindOf(values.Namespace, values.Labels, values.AdditionalSelectors)
	if err != nil || kind == kindOther {
		return nil, err
	}
	if len(values.APIServers) == 0 {
		return nil, errors.New("the addresses of the seed's API server are not known")
	}
	networks, err := parseNetworks(values)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{denyAll(values.Namespace), allowToDNS(values.Namespace, networks)}
	if kind != kindHandler {
		objects = append(objects, allowToAPIServer(values))
	}
	if kind == kindWorkload {
		objects = append(objects,
			allowTo(values.Namespace, "allow-to-blocked-cidrs", constants.LabelNetworkPolicyToBlockedCIDRs,
				"Allows egress to the networks that are blocked otherwise.", toAll(networks.blocked)),
			allowTo(values.Namespace, "allow-to-public-networks", constants.LabelNetworkPolicyToPublicNetworks,
				"Allows egress to public networks, except for those that are blocked.", networks.public()),
			allowTo(values.Namespace, "allow-to-private-networks", constants.LabelNetworkPolicyToPrivateNetworks,
				"Allows egress to private networks, except for those of the seed and the shoot, and those that are blocked.",
				networks.private()),
		)
	}
	return objects, nil
}

func denyAll(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metaOf(namespace, "deny-all", "Denies all ingress and egress of all Pods that no other policy allows."),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// dnsPods are the values of the label k8s-app on the Pods that serve cluster DNS.
var dnsPods = []string{"kube-dns", "coredns", "node-local-dns"}

// dnsPorts are the port of DNS servers and the unprivileged port of CoreDNS in shoots.
var dnsPorts = []int32{53, 8053}

func allowToDNS(namespace string, networks *networks) *networkingv1.NetworkPolicy {
	peers := append(toAll(networks.dnsServers()), networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem}},
		PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "k8s-app", Operator: metav1.LabelSelectorOpIn, Values: dnsPods},
		}},
	})
	policy := allowTo(namespace, "allow-to-dns", constants.LabelNetworkPolicyToDNS,
		"Allows egress to the DNS servers of the cluster.", peers)
	for _, port := range dnsPorts {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
			policy.Spec.Egress[0].Ports = append(policy.Spec.Egress[0].Ports, networkingv1.NetworkPolicyPort{
				Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(port)),
			})
		}
	}
	return policy
}

// allowToAPIServer has one rule for each port of the API servers.
func allowToAPIServer(values Values) *networkingv1.NetworkPolicy {
	addresses := map[uint16][]netip.Prefix{}
	for _, server := range values.APIServers {
		addresses[server.Port()] = append(addresses[server.Port()], only(server.Addr()))
	}
	policy := allowTo(values.Namespace, "allow-to-runtime-apiserver", constants.LabelNetworkPolicyToRuntimeAPIServer,
		"Allows egress to the API server of the seed.", nil)
	for _, port := range slices.Sorted(maps.Keys(addresses)) {
		policy.Spec.Egress = append(policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{
			To: toAll(sorted(addresses[port])),
			Ports: []networkingv1.NetworkPolicyPort{{
				Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(int32(port))),
			}},
		})
	}
	return policy
}

// allowTo returns a policy that allows Pods with a label egress to peers. Without peers it has no rule, because a rule
// without peers allows all traffic.
func allowTo(namespace, name, label, description string, peers []networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metaOf(namespace, name, description+" The Pods need the label "+label+"="+constants.NetworkPolicyAllowed+"."),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{label: constants.NetworkPolicyAllowed}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		},
	}
	if len(peers) > 0 {
		policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: peers}}
	}
	return policy
}

func metaOf(namespace, name, description string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{constants.AnnotationGardenerDescription: description},
	}
}

func toAll(prefixes []netip.Prefix) []networkingv1.NetworkPolicyPeer {
	peers := make([]networkingv1.NetworkPolicyPeer, 0, len(prefixes))
	for _, prefix := range prefixes {
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: prefix.String()}})
	}
	return peers
}

// parse parses networks in CIDR notation. field is the name of their field in errors.
func parse(field string, texts ...string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}
