package nodelocaldns

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
)

// corefile returns the configuration of the cache. It asks the DNS server of the cluster for the names of the cluster, and by default the
// DNS servers of the node for all others.
func corefile(values Values) string {
	inside, outside := "prefer_udp", "prefer_udp"
	if ptr.Deref(values.Config.ForceTCPToClusterDNS, true) {
		inside = "force_tcp"
	}
	if ptr.Deref(values.Config.ForceTCPToUpstreamDNS, true) {
		outside = "force_tcp"
	}
	cluster := clusterDNS
	if values.IPVS {
		cluster = strings.Join(values.ClusterIPs, " ")
	}
	others := upstreamServers
	if ptr.Deref(values.Config.DisableForwardToUpstreamDNS, false) {
		others = cluster
	}
	health := fmt.Sprintf("  health %s:%d\n", values.address(), portHealth)
	if values.IPv6 {
		health = fmt.Sprintf("  health [%s]:%d\n", values.address(), portHealth)
	}
	const longer = "  cache {\n    success 9984 30\n    denial 9984 5\n  }\n"
	return block(values, values.ClusterDomain, longer, cluster, inside, health) +
		block(values, "in-addr.arpa", "  cache 30\n", cluster, inside, "") +
		block(values, "ip6.arpa", "  cache 30\n", cluster, inside, "") +
		block(values, ".", "  cache 30\n", others, outside, "")
}

// block returns the block of a zone that forwards requests to servers by a protocol.
func block(values Values, zone, cache, servers, protocol, more string) string {
	return zone + ":53 {\n  errors\n" + cache + "  reload\n  loop\n  bind " + strings.Join(values.addresses(), " ") +
		"\n  forward . " + servers + " {\n    " + protocol + "\n  }\n" + fmt.Sprintf("  prometheus :%d\n", portMetrics) + more +
		"  import custom/*.override\n}\n"
}
