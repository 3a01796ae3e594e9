// Command gardenlet deploys the components of a Seed, and reports to the garden.
package main

import "github.com/trellis-k8s/trellis/cmd/gardenlet/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
