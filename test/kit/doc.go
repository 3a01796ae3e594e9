// Package kit has the common helpers of tests on a control plane: waiting, namespaces, recorded requests, and the
// resource-manager as a process.
package kit
