// Package shootstate contains the garden's controller that keeps the ShootState of a Shoot while its control plane moves to another Seed:
// without it, the control plane could not be restored.
package shootstate
