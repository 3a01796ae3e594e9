// Command tunnel runs one end of the tunnel from the API server of a Shoot to its nodes.
package main

import "github.com/trellis-k8s/trellis/cmd/tunnel/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
