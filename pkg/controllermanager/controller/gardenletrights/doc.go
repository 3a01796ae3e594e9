// Package gardenletrights contains the garden's controller that grants the gardenlet of a Seed rights to single objects, by
// their names: the objects to which its Shoots, its Seed, its BackupBuckets and its ControllerInstallations refer, and those
// that it maintains for its Shoots. It maintains a Role and a RoleBinding for each Seed in each namespace with such objects.
package gardenletrights
