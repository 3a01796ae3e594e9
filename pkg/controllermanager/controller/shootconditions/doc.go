// Package shootconditions contains the garden's controller that shows the conditions of a Seed in the Shoot that a ManagedSeed made a Seed of.
package shootconditions
