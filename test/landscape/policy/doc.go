// Package policy enforces NetworkPolicies on a node with nftables. What the policies of a cluster mean is a pure function: [Translate].
package policy
