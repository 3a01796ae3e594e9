// Package migration tests moves of control planes between two Seeds, with a garden and two seeds that have real API servers.
package migration
