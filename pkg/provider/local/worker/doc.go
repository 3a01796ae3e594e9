// Package worker makes the machines of worker pools. A machine is a privileged Pod with systemd, or, on a control plane without kubelets, a Node
// that KWOK simulates. A pool has a deployment for each zone, a set of equal machines, and each machine travels in a bundle of its own, so that
// the machines that exist are those whose bundles do. What has to be created, drained and deleted is decided by pure functions.
package worker
