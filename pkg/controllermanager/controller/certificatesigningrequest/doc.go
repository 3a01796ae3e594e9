// Package certificatesigningrequest contains the garden's controller that approves or denies the requests of gardenlets for
// their client certificates: the first one, with bootstrap credentials that name the Seed, and renewals.
package certificatesigningrequest
