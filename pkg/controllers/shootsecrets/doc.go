// Package shootsecrets has the controller of the garden that lets the gardenlet of a Seed read the Secrets that the Shoots of that Seed name, and no
// others: in each namespace with Shoots, a Role and a RoleBinding for each Seed.
package shootsecrets
