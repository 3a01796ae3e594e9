// Package nodeagentauthorizer is the webhook that authorizes requests of node agents. A node agent has access to what belongs to
// its own Node, and to little else (rules.go).
//
// decide.go and rules.go decide, from a review and from facts. lookup.go and facts.go find the facts, handler.go talks to API servers.
//
// A request costs no read of an API server if caches hold what it depends on and it is allowed. AddToManager makes these caches, apart
// from others, since they are restricted and reduced:
//
//   - source cluster, only with a machine namespace: Machines (machine.sapcloud.io/v1alpha1, unstructured) of that namespace, from which
//     the label node and the label worker.gardener.cloud/gardener-node-agent-secret-name in spec.nodeTemplate.metadata.labels are kept.
//     The kind may come later.
//   - target cluster: metadata of Nodes, from which the labels worker.gardener.cloud/gardener-node-agent-secret-name and
//     kubernetes.io/hostname are kept.
//   - target cluster: metadata of Secrets in kube-system with the label worker.gardener.cloud/pool, from which name, version and that label
//     are kept.
//
// Read from the API server of the target cluster are whether a Pod is on a Node (a list of metadata by name and Node), a
// CertificateSigningRequest, and the key osc.yaml of a Secret with the configuration of an operating system, once for each version;
// what is kept of it are the names of Secrets and hosts.
//
// A cache may be behind, so nothing is denied by its word alone: Machine, Node and the metadata of a Secret are read from the API server
// first. What was read holds for a second, so that a node agent that is denied repeatedly causes no more than one read of each per
// second. Pods and CertificateSigningRequests can be chosen by the requests; a node agent can have 20 of them read per second.
//
// It needs these rights: get, list and watch Machines in the source cluster; get, list and watch Nodes, get, list and watch Secrets in
// kube-system, list Pods and get CertificateSigningRequests in the target cluster.
package nodeagentauthorizer
