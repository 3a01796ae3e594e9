// Package agents runs on each node of a landscape, next to the kubelet and kube-proxy. It enforces NetworkPolicies,
// maintains the network of Pods with the routes between nodes, and, on one node of the cluster, assigns addresses to
// Services of the type LoadBalancer.
package agents
