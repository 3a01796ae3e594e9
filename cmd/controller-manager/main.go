// Command controller-manager runs the controllers of a garden that need no access to seeds.
package main

import "github.com/trellis-k8s/trellis/cmd/controller-manager/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
