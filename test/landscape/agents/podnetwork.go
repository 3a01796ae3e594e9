package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	"sigs.k8s.io/knftables"
)

const (
	// routeProtocol marks the routes that this agent has added.
	routeProtocol = 90
	// bridge is the network device that Pods are connected to.
	bridge = "landscape0"
	// masqueradeTable is the nftables table, of the family ip, that replaces the source address of packets from Pods to other
	// networks by the address of the node.
	masqueradeTable = "landscape-masquerade"
	cniFile         = "10-landscape.conflist"
)

// wantedRoutes returns the networks of the Pods of other nodes with the addresses of these nodes, and the network of the
// Pods of this node. The latter is invalid as long as the node has none.
func wantedRoutes(nodes []*corev1.Node, self string) (own netip.Prefix, others map[netip.Prefix]netip.Addr) {
	others = map[netip.Prefix]netip.Addr{}
	for _, n := range nodes {
		pods, err := netip.ParsePrefix(n.Spec.PodCIDR)
		if err != nil || !pods.Addr().Is4() {
			continue
		}
		if n.Name == self {
			own = pods
			continue
		}
		for _, a := range n.Status.Addresses {
			address, err := netip.ParseAddr(a.Address)
			if a.Type == corev1.NodeInternalIP && err == nil && address.Is4() {
				others[pods] = address
				break
			}
		}
	}
	return own, others
}

func podNetwork(factory informers.SharedInformerFactory, o Options) (*agent, error) {
	nodes := factory.Core().V1().Nodes()
	act := func(ctx context.Context) error {
		all, err := nodes.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		own, others := wantedRoutes(all, o.Node)
		if others, err = onLink(others); err != nil {
			return err
		}
		if err := keepRoutes(others); err != nil {
			return err
		}
		if !own.IsValid() {
			return nil // the node will get one, which triggers the agent again
		}
		if err := masquerade(ctx, o.ClusterPods); err != nil {
			return err
		}
		return writeConfiguration(filepath.Join(o.PodNetwork, cniFile), own)
	}
	return newAgent("pod-network", act, nodes.Informer())
}

// onLink returns the routes over nodes that are in the same network as this one. A machine can be a node of the cluster
// that it is a Pod of. It reaches other nodes and their Pods through the node that it runs on, which is its router.
func onLink(routes map[netip.Prefix]netip.Addr) (map[netip.Prefix]netip.Addr, error) {
	direct := map[netip.Prefix]netip.Addr{}
	for network, node := range routes {
		found, err := netlink.RouteGet(node.AsSlice())
		if err != nil {
			return nil, fmt.Errorf("finding the route to the node %s: %w", node, err)
		}
		if len(found) > 0 && found[0].Gw == nil {
			direct[network] = node
		}
	}
	return direct, nil
}

// keepRoutes adds and replaces the wanted routes, and removes earlier ones that are not wanted anymore.
func keepRoutes(wanted map[netip.Prefix]netip.Addr) error {
	existing, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return fmt.Errorf("listing routes: %w", err)
	}
	var errs []error
	for i := range existing {
		if _, keep := wanted[prefix(existing[i].Dst)]; !keep {
			errs = append(errs, netlink.RouteDel(&existing[i]))
		}
	}
	networks := make([]netip.Prefix, 0, len(wanted))
	for network := range wanted {
		networks = append(networks, network)
	}
	slices.SortFunc(networks, func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) })
	for _, network := range networks {
		destination := &net.IPNet{IP: network.Addr().AsSlice(), Mask: net.CIDRMask(network.Bits(), 32)}
		err := netlink.RouteReplace(&netlink.Route{Dst: destination, Gw: wanted[network].AsSlice(), Protocol: routeProtocol})
		if err != nil {
			errs = append(errs, fmt.Errorf("the route to %s over %s: %w", network, wanted[network], err))
		}
	}
	return errors.Join(errs...)
}

func prefix(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	address, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), bits)
}

// masquerade replaces the source address of packets that Pods send out of the cluster by the address of the node.
func masquerade(ctx context.Context, pods netip.Prefix) error {
	nft, err := knftables.New(knftables.IPv4Family, masqueradeTable)
	if err != nil {
		return fmt.Errorf("connecting to nftables: %w", err)
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Add(&knftables.Chain{
		Name: "postrouting", Type: knftables.PtrTo(knftables.NATType), Hook: knftables.PtrTo(knftables.PostroutingHook),
		Priority: knftables.PtrTo(knftables.SNATPriority),
	})
	tx.Flush(&knftables.Chain{Name: "postrouting"})
	tx.Add(&knftables.Rule{Chain: "postrouting", Rule: fmt.Sprintf("ip saddr %s ip daddr != %s masquerade", pods, pods)})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("masquerading packets of Pods: %w", err)
	}
	return nil
}

// writeConfiguration writes the CNI configuration. The node is ready for Pods once the file exists.
func writeConfiguration(path string, pods netip.Prefix) error {
	content, err := json.MarshalIndent(configuration(pods), "", "  ")
	if err != nil {
		return fmt.Errorf("writing the CNI configuration: %w", err)
	}
	if existing, err := os.ReadFile(path); err == nil && bytes.Equal(existing, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing the CNI configuration: %w", err)
	}
	// The rename is atomic: containerd reads the file as soon as it exists.
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("writing the CNI configuration: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the CNI configuration: %w", err)
	}
	klog.InfoS("Wrote the CNI configuration", "pods", pods)
	return nil
}

func configuration(pods netip.Prefix) map[string]any {
	return map[string]any{"cniVersion": "1.0.0", "name": "landscape", "plugins": []any{
		map[string]any{
			"type": "bridge", "bridge": bridge, "isGateway": true, "ipMasq": false, "hairpinMode": true,
			"ipam": map[string]any{
				"type": "host-local", "ranges": []any{[]any{map[string]any{"subnet": pods.String()}}},
				"routes": []any{map[string]any{"dst": "0.0.0.0/0"}}, "dataDir": "/run/landscape-addresses",
			},
		},
		map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
	}}
}
