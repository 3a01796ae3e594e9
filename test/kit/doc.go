// Package kit holds what tests on a control plane share: waiting, namespaces, requests that were sent, and the resource-manager
// as a process.
package kit
