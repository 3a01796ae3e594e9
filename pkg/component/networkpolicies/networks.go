package networkpolicies

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
)

// everywhere are all addresses, by IP family.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// privateRanges are the addresses that are not routed in the Internet: those of RFC 1918 and RFC 6598, link-local ones and those of RFC 4193.
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fc00::/7"),
}

// dnsOffset is the place of the DNS server's address in the range of Services.
const dnsOffset = 10

// The addresses on which a DNS cache on each node listens, by IP family.
var (
	nodeLocalDNSv4 = netip.MustParseAddr("169.254.20.10")
	nodeLocalDNSv6 = netip.MustParseAddr("fd30:1319:f1e:230b::1")
)

// networks are those that policies are made of.
type networks struct {
	// services is the range of the seed's Services.
	services netip.Prefix
	// cluster are the networks of the seed and the shoot, blocked those that only Pods with their label may reach.
	cluster, blocked []netip.Prefix
}

func parseNetworks(values Values) (*networks, error) {
	declared := values.Networks
	services, err := parse("networks.services", declared.Services)
	if err != nil {
		return nil, err
	}
	pods, err := parse("networks.pods", declared.Pods)
	if err != nil {
		return nil, err
	}
	result := &networks{services: services[0], cluster: append(pods, services...)}
	if nodes := ptr.Deref(declared.Nodes, ""); nodes != "" {
		prefixes, err := parse("networks.nodes", nodes)
		if err != nil {
			return nil, err
		}
		result.cluster = append(result.cluster, prefixes...)
	}
	shoot, err := parse("the networks of the shoot", values.ShootNetworks...)
	if err != nil {
		return nil, err
	}
	result.cluster = append(result.cluster, shoot...)
	blocked, err := parse("networks.blockCIDRs", declared.BlockCIDRs...)
	if err != nil {
		return nil, err
	}
	result.blocked = sorted(blocked)
	return result, nil
}

// dnsServers are the addresses of the cluster's DNS server and of the cache on each node.
func (n *networks) dnsServers() []netip.Prefix {
	address := n.services.Addr()
	for range dnsOffset {
		address = address.Next()
	}
	local := nodeLocalDNSv4
	if address.Is6() {
		local = nodeLocalDNSv6
	}
	return []netip.Prefix{only(address), only(local)}
}

// public are all addresses but private and blocked ones. Networks of the cluster with public addresses are left out for IPv6, where Pods
// have such addresses.
func (n *networks) public() []networkingv1.NetworkPolicyPeer {
	except := slices.Concat(privateRanges, n.blocked)
	for _, prefix := range n.cluster {
		if prefix.Addr().Is6() {
			except = append(except, prefix)
		}
	}
	return toRanges(everywhere, except)
}

// private are all private addresses but those of the cluster and blocked ones.
func (n *networks) private() []networkingv1.NetworkPolicyPeer {
	return toRanges(privateRanges, slices.Concat(n.cluster, n.blocked))
}

// toRanges returns ranges as peers, without the exceptions in them.
func toRanges(ranges, exceptions []netip.Prefix) []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	for _, all := range ranges {
		if slices.ContainsFunc(exceptions, func(exception netip.Prefix) bool { return covers(exception, all) }) {
			continue
		}
		block := &networkingv1.IPBlock{CIDR: all.String()}
		for _, exception := range outermost(exceptions) {
			if covers(all, exception) {
				block.Except = append(block.Except, exception.String())
			}
		}
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: block})
	}
	return peers
}

// outermost returns the prefixes that are not in another one, sorted.
func outermost(prefixes []netip.Prefix) []netip.Prefix {
	var outer []netip.Prefix
	for _, prefix := range sorted(prefixes) { // what covers another one comes before it
		if !slices.ContainsFunc(outer, func(other netip.Prefix) bool { return covers(other, prefix) }) {
			outer = append(outer, prefix)
		}
	}
	return outer
}

// covers reports whether all addresses of the second prefix are in the first one.
func covers(all, part netip.Prefix) bool {
	return all.Bits() <= part.Bits() && all.Contains(part.Addr())
}

// sorted returns the prefixes without duplicates, by address and then from large to small ones.
func sorted(prefixes []netip.Prefix) []netip.Prefix {
	result := slices.Clone(prefixes)
	slices.SortFunc(result, func(a, b netip.Prefix) int {
		if order := a.Addr().Compare(b.Addr()); order != 0 {
			return order
		}
		return a.Bits() - b.Bits()
	})
	return slices.Compact(result)
}

// only is the range of one address.
func only(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	return netip.PrefixFrom(address, address.BitLen())
}
