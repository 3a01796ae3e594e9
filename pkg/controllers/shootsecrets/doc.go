// Package shootsecrets contains the garden's controller that permits the gardenlet of a Seed to read the Secrets to which
// Shoots of that Seed refer, and no others. It maintains a Role and a RoleBinding for each Seed in each namespace with
// Shoots.
package shootsecrets
