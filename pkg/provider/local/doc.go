// Package local contains common definitions of the parts of the extension provider-local, such as names and settings.
// Each kind of extension resource has a package below it. See docs/provider-local.md.
package local
