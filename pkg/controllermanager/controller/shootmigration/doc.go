// Package shootmigration contains the garden's controller of the constraint ReadyForMigration, which lets the control plane of a Shoot
// begin to move to another Seed.
package shootmigration
