// Package controlplane runs a real Kubernetes control plane for tests and the demo: etcd and kube-apiserver through
// envtest and, optionally, kube-controller-manager, kube-scheduler and kwok with simulated nodes, on which Pods become
// Ready. Everything listens on loopback only.
//
// The programs come from $KUBEBUILDER_ASSETS or from bin/, where `make controlplane` builds them. On Linux, all programs
// end with the process that called [Start], even if that is killed.
//
// The tests of a package share one control plane with [Shared].
package controlplane
