// Package seedlifecycle contains the garden's controller that reports gardenlets which do not renew their Leases: the condition
// GardenletReady of the Seed becomes Unknown, later also the conditions of its Shoots.
package seedlifecycle
