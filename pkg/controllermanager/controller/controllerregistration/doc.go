// Package controllerregistration contains the garden's controllers that install extensions in Seeds. They create the
// ControllerInstallations that package installation decides on, manage finalizers of referenced objects, and set the
// condition of Seeds that summarizes the installations.
package controllerregistration
