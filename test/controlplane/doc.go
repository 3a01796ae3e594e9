// Package controlplane runs a real Kubernetes control plane for tests and the demo: etcd and
// kube-apiserver through envtest and, on request, kube-controller-manager, kube-scheduler and kwok
// with simulated nodes, on which pods become Ready. Everything listens on loopback only.
//
// The programs come from $KUBEBUILDER_ASSETS or from bin/, where `make controlplane` builds them.
// On Linux nothing outlives the process that called [Start], not even if that is killed.
//
// A test package shares one control plane between its tests with [Shared].
package controlplane
