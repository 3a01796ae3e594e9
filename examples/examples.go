// Package examples holds the example manifests, so that the demo and the tests use the files that people read.
package examples

import "embed"

// Files are hello.yaml, the folder webshop and the kinds of fleet/core, as they are in the repository.
//
//go:embed hello.yaml webshop fleet/core
var Files embed.FS
