// Package installation contains gardenlet's controller that installs extensions. It renders the chart of a
// ControllerInstallation, emits the rendered objects as one ManagedResource, and reports the conditions.
package installation
