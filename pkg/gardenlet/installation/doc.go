// Package installation has the controller of gardenlet that installs extensions: it renders the chart of a ControllerInstallation, emits what
// comes out as one ManagedResource, and reports its conditions.
package installation
