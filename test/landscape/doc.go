// Package landscape runs a real Kubernetes cluster on this machine, the base cluster: containerd, a kubelet and kube-proxy, beside etcd and
// the control plane, in namespaces of their own, from programs that are built here. docs/landscape.md describes it.
package landscape
