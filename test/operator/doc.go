// Package operator tests the flow of a Garden with a runtime cluster that has a real API server and a real resource-manager. Pods do not run: those of
// Deployments are simulated, and the test acts as the operator of etcd.
package operator
