// Package policy enforces NetworkPolicies on a node with nftables. A pure function, [Translate], translates the policies of
// a cluster.
package policy
