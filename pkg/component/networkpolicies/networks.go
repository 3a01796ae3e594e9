package networkpolicies

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// everywhere contains all addresses by IP family.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// privateRanges are the address ranges that are not routed on the Internet: RFC 1918, RFC 6598, link-local addresses
// and RFC 4193.
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fc00::/7"),
}

// dnsOffset is the offset of the DNS server's address in the Service range.
const dnsOffset = 10

// The listen addresses of the node-local DNS cache, by IP family.
var (
	nodeLocalDNSv4 = netip.MustParseAddr("169.254.20.10")
	nodeLocalDNSv6 = netip.MustParseAddr("fd30:1319:f1e:230b::1")
)

// Networks are the networks of a cluster, in CIDR notation. Blocked are networks that only Pods with a special label may reach.
type Networks struct{ Nodes, Pods, Services, Blocked []string }

// OfSeed returns the networks of a Seed.
func OfSeed(of corev1beta1.SeedNetworks) Networks {
	networks := Networks{Pods: []string{of.Pods}, Services: []string{of.Services}, Blocked: of.BlockCIDRs}
	if nodes := ptr.Deref(of.Nodes, ""); nodes != "" {
		networks.Nodes = []string{nodes}
	}
	return networks
}

// networks are the inputs of the policies.
type networks struct {
	// services are the Service ranges of the cluster.
	services []netip.Prefix
	// cluster are the networks of the seed and the shoot. blocked are networks that only Pods with a special label may
	// reach.
	cluster, blocked []netip.Prefix
}

func parseNetworks(values Values) (*networks, error) {
	declared := values.Networks
	services, err := parse("networks.services", declared.Services...)
	if err != nil {
		return nil, err
	}
	pods, err := parse("networks.pods", declared.Pods...)
	if err != nil {
		return nil, err
	}
	nodes, err := parse("networks.nodes", declared.Nodes...)
	if err != nil {
		return nil, err
	}
	result := &networks{services: services, cluster: slices.Concat(pods, services, nodes)}
	shoot, err := parse("the networks of the shoot", values.ShootNetworks...)
	if err != nil {
		return nil, err
	}
	result.cluster = append(result.cluster, shoot...)
	blocked, err := parse("networks.blockCIDRs", declared.Blocked...)
	if err != nil {
		return nil, err
	}
	result.blocked = sorted(blocked)
	return result, nil
}

// dnsServers returns the addresses of the cluster's DNS servers and of the node-local caches.
func (n *networks) dnsServers() []netip.Prefix {
	var servers []netip.Prefix
	for _, services := range n.services {
		address := services.Addr()
		for range dnsOffset {
			address = address.Next()
		}
		local := nodeLocalDNSv4
		if address.Is6() {
			local = nodeLocalDNSv6
		}
		servers = append(servers, only(address), only(local))
	}
	return servers
}

// public returns all addresses except private and blocked ones. For IPv6 it also excludes the networks of the cluster,
// because Pods have public IPv6 addresses.
func (n *networks) public() []networkingv1.NetworkPolicyPeer {
	except := slices.Concat(privateRanges, n.blocked)
	for _, prefix := range n.cluster {
		if prefix.Addr().Is6() {
			except = append(except, prefix)
		}
	}
	return toRanges(everywhere, except)
}

// private returns all private addresses except those of the cluster and blocked ones.
func (n *networks) private() []networkingv1.NetworkPolicyPeer {
	return toRanges(privateRanges, slices.Concat(n.cluster, n.blocked))
}

// toRanges returns peers for the ranges without the exceptions they contain.
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

// outermost returns the prefixes that no other prefix contains, sorted.
func outermost(prefixes []netip.Prefix) []netip.Prefix {
	var outer []netip.Prefix
	for _, prefix := range sorted(prefixes) { // a prefix comes before the prefixes that it contains
		if !slices.ContainsFunc(outer, func(other netip.Prefix) bool { return covers(other, prefix) }) {
			outer = append(outer, prefix)
		}
	}
	return outer
}

// covers reports whether all contains part.
func covers(all, part netip.Prefix) bool {
	return all.Bits() <= part.Bits() && all.Contains(part.Addr())
}

// sorted returns the prefixes without duplicates, by address and then from large to small.
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

// only returns the prefix of a single address.
func only(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	return netip.PrefixFrom(address, address.BitLen())
}
