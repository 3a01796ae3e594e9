// Package conformance builds the images that Kubernetes' conformance tests use, from Go modules and Debian packages, because the nodes of
// a landscape reach no registry outside of it.
package conformance
