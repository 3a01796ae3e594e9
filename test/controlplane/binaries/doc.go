// Package binaries pins, in its own module, the programs of a Kubernetes control plane that
// hack/build-controlplane.sh builds into bin/. All k8s.io modules are replaced by the versions
// that were released together with the pinned k8s.io/kubernetes.
package binaries
