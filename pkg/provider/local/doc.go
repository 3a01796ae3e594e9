// Package local has what the parts of the extension provider-local have in common: its names, and where it keeps what. Each kind of extension
// resource has a package of its own below it. See docs/provider-local.md.
package local
