// Package managedseeds tests the gardenlets that others deploy, with real API servers: a garden, which also serves as the seed of a Shoot, and
// the cluster of the Shoot, which also serves as a seed whose gardenlet upgrades itself. The test does what the deployed gardenlets would do.
package managedseeds
