// Command admission-controller serves the admission webhooks of a garden.
package main

import "github.com/trellis-k8s/trellis/cmd/admission-controller/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
