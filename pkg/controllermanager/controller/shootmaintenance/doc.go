// Package shootmaintenance contains the garden's controller that maintains Shoots in their maintenance windows: it updates versions of
// Kubernetes and machine images, requests operations, and rotates credentials.
package shootmaintenance
