// Package installation decides which extensions are installed in a Seed. A ControllerRegistration lists the kinds and
// types of extension objects for which an extension is responsible. A ControllerInstallation requests its installation
// from the gardenlet of a Seed. The decision is a pure function of objects in the garden, see [Decide]. Package
// controllerregistration executes it.
package installation
