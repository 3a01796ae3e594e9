// Package seed contains the garden's controller that gives each Seed its namespace seed-<name>, with copies of the Secrets of
// namespace garden that have a role, such as default domains. Gardenlets read them there, because they cannot list the Secrets of
// namespace garden.
package seed
