// Command provider-local is the extension that provides infrastructure on the machine on which the seed runs.
package main

import "github.com/trellis-k8s/trellis/cmd/provider-local/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
