// Package examples holds the example manifests, so that the demo and the tests use the files that people read.
package examples

import "embed"

// Files are those that the demo and the tests use, as they are in the repository.
//
//go:embed hello.yaml webshop fleet/core demo provider-local/registration.yaml
var Files embed.FS
