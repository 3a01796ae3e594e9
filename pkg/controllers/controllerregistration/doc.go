// Package controllerregistration has the controllers of the garden that have extensions installed in Seeds: the ControllerInstallations that
// package installation decides on, the finalizers of what these refer to, and the condition of
// Seeds that sums up how the installations are.
package controllerregistration
