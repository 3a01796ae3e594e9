package networkpolicies

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAllowedAddresses checks, for random networks and addresses, that Pods with a label reach exactly the addresses that the
// label stands for, and that Kubernetes accepts the policies.
func TestAllowedAddresses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		v := values()
		v.Labels = map[string]string{"gardener.cloud/role": "shoot"}
		v.Networks = Networks{
			Nodes: []string{anyNetwork(random).String()}, Pods: []string{anyNetwork(random).String()}, Services: []string{anyNetwork(random).String()},
		}
		for range random.IntN(3) {
			v.Networks.Blocked = append(v.Networks.Blocked, anyNetwork(random).String())
			v.ShootNetworks = append(v.ShootNetworks, anyNetwork(random).String())
		}
		objects, err := Objects(v)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parseNetworks(v)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			address := anyAddress(random, slices.Concat(parsed.cluster, parsed.blocked))
			in := func(prefixes []netip.Prefix) bool {
				return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
			}
			private, blocked, cluster := in(privateRanges), in(parsed.blocked), in(parsed.cluster)
			for name, want := range map[string]bool{
				"deny-all":                  false,
				"allow-to-blocked-cidrs":    blocked,
				"allow-to-private-networks": private && !blocked && !cluster,
				"allow-to-public-networks":  !private && !blocked && (address.Is4() || !cluster),
			} {
				if got := allows(t, objects, name, address); got != want {
					t.Fatalf("policy %s allows %s: %t, want %t; values %+v", name, address, got, want, v)
				}
			}
		}
	}
}

func anyNetwork(random *rand.Rand) netip.Prefix {
	address := anyAddress(random, privateRanges)
	return netip.PrefixFrom(address, 4+random.IntN(address.BitLen()-3)).Masked()
}

// anyAddress returns an address in or near one of the networks, or a random one.
func anyAddress(random *rand.Rand, networks []netip.Prefix) netip.Addr {
	if len(networks) == 0 || random.IntN(4) == 0 {
		var bytes [16]byte
		for i := range bytes {
			bytes[i] = byte(random.UintN(256))
		}
		if random.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte(bytes[:4]))
		}
		return netip.AddrFrom16(bytes)
	}
	network := networks[random.IntN(len(networks))]
	bytes := network.Addr().AsSlice()
	if at := network.Bits() / 8; at < len(bytes) {
		bytes[at] ^= byte(random.UintN(256)) >> (network.Bits() % 8) // still an address in the network
	}
	address, _ := netip.AddrFromSlice(bytes)
	switch random.IntN(4) {
	case 0:
		if before := network.Addr().Prev(); before.IsValid() {
			return before
		}
	case 1:
		return network.Addr()
	}
	return address
}

// allows reports whether a policy allows connections to an address. It also validates the ranges of the policy as Kubernetes
// does.
func allows(t *testing.T, objects []client.Object, name string, address netip.Addr) bool {
	t.Helper()
	for _, object := range objects {
		policy, isPolicy := object.(*networkingv1.NetworkPolicy)
		if !isPolicy || policy.Name != name {
			continue
		}
		for _, rule := range policy.Spec.Egress {
			if len(rule.To) == 0 {
				t.Fatalf("policy %s has a rule without peers, which allows everything", name)
			}
			if slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool { return contains(t, peer.IPBlock, address) }) {
				return true
			}
		}
		return false
	}
	t.Fatalf("policy %s does not exist", name)
	return false
}

func contains(t *testing.T, block *networkingv1.IPBlock, address netip.Addr) bool {
	t.Helper()
	all := netip.MustParsePrefix(block.CIDR)
	inside := all.Contains(address)
	for _, text := range block.Except {
		exception := netip.MustParsePrefix(text)
		if exception.Bits() <= all.Bits() || !all.Contains(exception.Addr()) {
			t.Fatalf("the exception %s is not a strict subset of %s", exception, all)
		}
		inside = inside && !exception.Contains(address)
	}
	return inside
}
