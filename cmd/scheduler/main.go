// Command scheduler assigns the Shoots of a garden to Seeds.
package main

import "github.com/trellis-k8s/trellis/cmd/scheduler/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
