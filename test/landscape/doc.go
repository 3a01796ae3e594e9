// Package landscape runs a real Kubernetes cluster, the base cluster, on this machine: the control plane, etcd, containerd,
// a kubelet and kube-proxy. They run in their own namespaces, from programs that are built here. docs/landscape.md
// describes it.
package landscape
