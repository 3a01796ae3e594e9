// Package constants has the names that the components of a fleet share in addition to the fields of their API:
// annotations, labels, operations, finalizers, taints, namespaces, Secrets, users and ranges. They are the same as
// Gardener's.
package constants
