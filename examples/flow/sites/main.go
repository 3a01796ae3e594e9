// Command sites runs the example flow: docs/flows.md.
package main

import "github.com/trellis-k8s/trellis/examples/flow/sites/app"

func main() { app.Main() }
