// Package worker manages the machines of worker pools. A machine is a privileged Pod with systemd or, on a control plane
// without kubelets, a Node that KWOK simulates. A pool has a deployment for each zone, which is a set of equal machines.
// Each machine has its own bundle, so the bundles define which machines exist. Pure functions decide which machines are
// created, drained and deleted.
package worker
