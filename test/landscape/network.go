package landscape

import (
	"fmt"
	"net/netip"
)

// Network is the block of 65,536 addresses of a landscape.
type Network struct {
	block [2]byte
}

// ParseNetwork parses a block, for example 10.99.0.0/16.
func ParseNetwork(block string) (Network, error) {
	p, err := netip.ParsePrefix(block)
	if err != nil {
		return Network{}, fmt.Errorf("the block of addresses: %w", err)
	}
	if !p.Addr().Is4() || p.Bits() != 16 || p.Masked() != p {
		return Network{}, fmt.Errorf("the block of addresses is %s, want an IPv4 network with 16 bits, for example 10.99.0.0/16", block)
	}
	a := p.Addr().As4()
	return Network{[2]byte{a[0], a[1]}}, nil
}

// candidates returns the blocks to try if none is configured.
func candidates() []Network {
	var result []Network
	for second := byte(99); second < 120; second++ {
		result = append(result, Network{[2]byte{10, second}})
	}
	return result
}

func (n Network) at(third, fourth byte) netip.Addr {
	return netip.AddrFrom4([4]byte{n.block[0], n.block[1], third, fourth})
}

// Block returns all addresses of the landscape.
func (n Network) Block() netip.Prefix { return netip.PrefixFrom(n.at(0, 0), 16) }

// Pods returns the network of Pods, which has a /22 for each node.
func (n Network) Pods() netip.Prefix { return netip.PrefixFrom(n.at(0, 0), 17) }

// Services returns the network of the virtual addresses of Services.
func (n Network) Services() netip.Prefix { return netip.PrefixFrom(n.at(128, 0), 18) }

// LoadBalancers returns the network that Services of the type LoadBalancer get their addresses from.
func (n Network) LoadBalancers() netip.Prefix { return netip.PrefixFrom(n.at(192, 0), 20) }

// APIService returns the address of the Service kubernetes.
func (n Network) APIService() netip.Addr { return n.at(128, 1) }

// DNS returns the address of the Service kube-dns.
func (n Network) DNS() netip.Addr { return n.at(128, 10) }

// Host returns the host's end of the link between the host and the base cluster.
func (n Network) Host() netip.Prefix { return netip.PrefixFrom(n.at(255, 1), 30) }

// Machine returns the address of the base cluster: its node, its API server and its registry.
func (n Network) Machine() netip.Prefix { return netip.PrefixFrom(n.at(255, 2), 30) }
