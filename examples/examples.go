// Package examples holds the example manifests, so that the demo and the tests use the files that people read.
package examples

import "embed"

// Files are hello.yaml and the folder webshop, as they are in the repository.
//
//go:embed hello.yaml webshop
var Files embed.FS
