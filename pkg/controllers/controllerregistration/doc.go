// Package controllerregistration has the controllers of the garden that have extensions installed in Seeds: the ControllerInstallations that
// package installation decides on, and the finalizers of what these refer to.
package controllerregistration
