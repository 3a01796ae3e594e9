// Package agents has what a landscape runs on each node beside the kubelet and kube-proxy: NetworkPolicies, the network of Pods with the
// routes between nodes, and, once in a cluster, addresses for Services of the type LoadBalancer.
package agents
