// Package installation decides which extensions are installed in a Seed. A ControllerRegistration says which kinds and types of extension
// objects an extension is responsible for; a ControllerInstallation asks the gardenlet of a Seed to install it there. The decision is a pure
// function of what the garden declares: [Decide]. Package controller below it carries the decision out.
package installation
