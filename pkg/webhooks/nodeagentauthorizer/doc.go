// Package nodeagentauthorizer implements the webhook that authorizes requests of node agents. A node agent has access to the
// objects of its own Node, and to few others (rules.go).
//
// decide.go and rules.go decide on a review based on facts. lookup.go and facts.go read the facts. handler.go serves API servers.
//
// An allowed request needs no read from an API server if caches hold its facts. AddToManager creates these caches. They are
// separate from other caches because they are restricted and reduced:
//
//   - source cluster, only with a machine namespace: Machines (machine.sapcloud.io/v1alpha1, unstructured) of that namespace,
//     reduced to the label node and the label worker.gardener.cloud/gardener-node-agent-secret-name in
//     spec.nodeTemplate.metadata.labels. The kind may be created later.
//   - target cluster: metadata of Nodes, reduced to the labels worker.gardener.cloud/gardener-node-agent-secret-name and
//     kubernetes.io/hostname.
//   - target cluster: metadata of Secrets in kube-system with the label worker.gardener.cloud/pool, reduced to name, version and
//     that label.
//
// The following facts are read from the API server of the target cluster: whether a Pod is on a Node (a list of metadata by name
// and Node), CertificateSigningRequests, and the key osc.yaml of a Secret with an operating system configuration. The latter is read
// once for each version. Only the names of Secrets and hosts are kept.
//
// A cache may be stale, so a request is not denied based on caches alone: the Machine, the Node and the metadata of a Secret are
// first read from the API server. A read is reused for a second, so that a node agent that is denied repeatedly causes at most one
// read of each object per second. Requests can choose Pods and CertificateSigningRequests freely. These reads are limited to 20 per
// second for each node agent.
//
// The webhook needs these rights: get, list and watch Machines in the source cluster; get, list and watch Nodes, get, list and watch
// Secrets in kube-system, list Pods and get CertificateSigningRequests in the target cluster.
package nodeagentauthorizer
