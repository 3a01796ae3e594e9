// Package seeddomains contains the garden's controller that copies the Secrets with default domains from namespace garden to
// the namespaces of Seeds, where gardenlets read them. Gardenlets cannot list the other Secrets of namespace garden.
package seeddomains
