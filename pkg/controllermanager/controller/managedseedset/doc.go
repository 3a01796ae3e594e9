// Package managedseedset contains the garden's controller of ManagedSeedSets. A replica of a set is a Shoot with the ManagedSeed and the
// Seed of the same name. The controller creates, retries and deletes one replica after the other.
package managedseedset
