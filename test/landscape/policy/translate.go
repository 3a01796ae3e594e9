package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Chain contains what the policies of one Pod allow in one direction, for one of its addresses. All other packets are
// dropped.
type Chain struct {
	// Address is the address of the Pod.
	Address netip.Addr
	// Egress is true for packets that the Pod sends, and false for packets that it receives.
	Egress bool
	// Rules are conditions in the nftables syntax. A packet that meets one is allowed. An empty rule allows everything.
	Rules []string
}

// Translate returns the chains of the Pods of a node that policies select. An empty name stands for all nodes. The caller
// has to allow packets of existing connections, and packets of a Pod to itself, before these chains.
func Translate(c Cluster, node string) []Chain {
	t := translation{pods: c.pods(), namespaces: c.namespaceLabels(), rules: map[key][]string{}}
	for _, policy := range c.Policies {
		selects := selector(&policy.Spec.PodSelector)
		ingress, egress := isolates(policy.Spec)
		for _, p := range t.pods {
			if p.Namespace != policy.Namespace || node != "" && p.Spec.NodeName != node || !selects.Matches(labels.Set(p.Labels)) {
				continue
			}
			for _, address := range p.addresses {
				if ingress {
					t.ingress(policy, p, address)
				}
				if egress {
					t.egress(policy, address)
				}
			}
		}
	}
	return t.chains()
}

type key struct {
	address netip.Addr
	egress  bool
}

type translation struct {
	pods       []pod
	namespaces map[string]labels.Set
	rules      map[key][]string
}

func (t *translation) ingress(policy *networkingv1.NetworkPolicy, p pod, address netip.Addr) {
	chain := key{address, false}
	t.isolate(chain)
	for _, rule := range policy.Spec.Ingress {
		ports := portMatches(rule.Ports, []pod{p})
		for _, from := range t.matches("saddr", policy.Namespace, rule.From, address) {
			t.allow(chain, from, ports)
		}
	}
}

func (t *translation) egress(policy *networkingv1.NetworkPolicy, address netip.Addr) {
	chain := key{address, true}
	t.isolate(chain)
	for _, rule := range policy.Spec.Egress {
		// A port number is the same for all Pods. A port name stands for a different number in each Pod.
		numbers, names := splitPorts(rule.Ports)
		if len(numbers) > 0 || len(rule.Ports) == 0 {
			for _, to := range t.matches("daddr", policy.Namespace, rule.To, address) {
				t.allow(chain, to, portMatches(numbers, nil))
			}
		}
		if len(names) == 0 {
			continue
		}
		for _, target := range t.targets(policy.Namespace, rule.To) {
			if to := addresses("daddr", []pod{target}, address); to != "" {
				t.allow(chain, to, portMatches(names, []pod{target}))
			}
		}
	}
}

// targets returns the Pods that a rule can apply to: all Pods if it has no peers.
func (t *translation) targets(namespace string, to []networkingv1.NetworkPolicyPeer) []pod {
	if len(to) == 0 {
		return t.pods
	}
	var result []pod
	for _, peer := range to {
		if peer.IPBlock == nil {
			result = append(result, peers(peer, namespace, t.pods, t.namespaces)...)
		}
	}
	return result
}

// matches returns conditions for the remote side of connections of a Pod with this address.
func (t *translation) matches(direction, namespace string, all []networkingv1.NetworkPolicyPeer, own netip.Addr) []string {
	if len(all) == 0 {
		return []string{""}
	}
	var result []string
	for _, peer := range all {
		var match string
		if peer.IPBlock != nil {
			match = block(direction, peer.IPBlock, own)
		} else {
			match = addresses(direction, peers(peer, namespace, t.pods, t.namespaces), own)
		}
		if match != "" {
			result = append(result, match)
		}
	}
	return result
}

// isolate creates a chain, which allows nothing yet.
func (t *translation) isolate(chain key) {
	if _, exists := t.rules[chain]; !exists {
		t.rules[chain] = nil
	}
}

func (t *translation) allow(chain key, peer string, ports []string) {
	for _, port := range ports {
		t.rules[chain] = append(t.rules[chain], strings.TrimSpace(peer+" "+port))
	}
}

func (t *translation) chains() []Chain {
	var result []Chain
	for k, rules := range t.rules {
		slices.Sort(rules)
		result = append(result, Chain{k.address, k.egress, slices.Compact(rules)})
	}
	slices.SortFunc(result, func(a, b Chain) int {
		if c := a.Address.Compare(b.Address); c != 0 {
			return c
		}
		if a.Egress == b.Egress {
			return 0
		}
		if b.Egress {
			return -1
		}
		return 1
	})
	return result
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "ip"
	}
	return "ip6"
}

// addresses returns the condition that the remote side is one of these Pods. It is empty if none of them has an address of
// the same family.
func addresses(direction string, pods []pod, own netip.Addr) string {
	var list []string
	for _, p := range pods {
		for _, a := range p.addresses {
			if a.Is4() == own.Is4() {
				list = append(list, a.String())
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return fmt.Sprintf("%s %s { %s }", family(own), direction, strings.Join(slices.Compact(list), ", "))
}

func block(direction string, b *networkingv1.IPBlock, own netip.Addr) string {
	network, err := netip.ParsePrefix(b.CIDR)
	if err != nil || network.Addr().Is4() != own.Is4() {
		return ""
	}
	match := fmt.Sprintf("%s %s %s", family(own), direction, network.Masked())
	var except []netip.Prefix
	for _, e := range b.Except {
		if prefix, err := netip.ParsePrefix(e); err == nil && prefix.Addr().Is4() == own.Is4() {
			except = append(except, prefix.Masked())
		}
	}
	if except = disjoint(except); len(except) > 0 {
		list := make([]string, len(except))
		for i, prefix := range except {
			list[i] = prefix.String()
		}
		match += fmt.Sprintf(" %s %s != { %s }", family(own), direction, strings.Join(list, ", "))
	}
	return match
}

// disjoint removes networks that other networks contain, because nftables rejects sets with overlapping elements.
func disjoint(networks []netip.Prefix) []netip.Prefix {
	slices.SortFunc(networks, func(a, b netip.Prefix) int {
		if c := a.Bits() - b.Bits(); c != 0 {
			return c
		}
		return a.Addr().Compare(b.Addr())
	})
	var result []netip.Prefix
	for _, n := range networks {
		if !slices.ContainsFunc(result, func(wider netip.Prefix) bool { return wider.Overlaps(n) }) {
			result = append(result, n)
		}
	}
	return result
}

func splitPorts(ports []networkingv1.NetworkPolicyPort) (numbers, names []networkingv1.NetworkPolicyPort) {
	for _, p := range ports {
		if p.Port != nil && p.Port.Type == intstr.String {
			names = append(names, p)
		} else {
			numbers = append(numbers, p)
		}
	}
	return numbers, names
}

// portMatches returns conditions for the ports of a rule. It resolves names to the ports of these Pods.
func portMatches(ports []networkingv1.NetworkPolicyPort, named []pod) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var result []string
	for _, p := range ports {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		name := strings.ToLower(string(protocol))
		switch {
		case p.Port == nil:
			result = append(result, "meta l4proto "+name)
		case p.Port.Type == intstr.Int && p.EndPort != nil && *p.EndPort > p.Port.IntVal:
			result = append(result, fmt.Sprintf("%s dport %d-%d", name, p.Port.IntVal, *p.EndPort))
		case p.Port.Type == intstr.Int:
			result = append(result, fmt.Sprintf("%s dport %d", name, p.Port.IntVal))
		default:
			for _, target := range named {
				for _, number := range portNumbers(target, p.Port.StrVal, protocol) {
					result = append(result, fmt.Sprintf("%s dport %d", name, number))
				}
			}
		}
	}
	return result
}

// portNumbers returns the ports of a Pod with a name. Of the init containers, only sidecars have ports.
func portNumbers(p pod, name string, protocol corev1.Protocol) []int32 {
	containers := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	var result []int32
	for _, c := range containers {
		for _, port := range c.Ports {
			given := port.Protocol
			if given == "" {
				given = corev1.ProtocolTCP
			}
			if port.Name == name && given == protocol {
				result = append(result, port.ContainerPort)
			}
		}
	}
	return result
}
